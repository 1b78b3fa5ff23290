#include "daemon/keeper/server.h"

#include <sys/stat.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/common/child_main.h"
#include "ipc/overloaded.h"
#include "ipc/runtime_dir.h"

namespace keeper {

namespace wire = ipc::control;

absl::Status Server::Listen(const std::string& runtime_dir) {
  absl::StatusOr<ipc::UniqueFd> listener = ipc::ListenAt(ipc::KeeperSocketPath(runtime_dir));
  if (!listener.ok()) return listener.status();
  acceptor_.Listen(
      std::move(*listener), [this](ipc::UniqueFd socket) { Add(std::move(socket)); },
      [](const std::string& sentence) { common::Log("keeper", sentence); });
  return absl::OkStatus();
}

void Server::Greet(ipc::UniqueFd connection) {
  if (wire::Send<wire::KeeperToDaemon>(connection.get(), keeper_->Describe()).ok())
    Add(std::move(connection));
}

void Server::Run() {
  if (connections_.empty()) ArmLinger();
  loop_.Run();
}

void Server::Add(ipc::UniqueFd socket) {
  const absl::StatusOr<ipc::Peer> peer = ipc::PeerOf(socket.get());
  if (!peer.ok() || peer->uid != geteuid()) return;
  const int fd = socket.get();
  connections_[fd] = Connection{std::move(socket)};
  loop_.Watch(fd, [this, fd] { (void)hearing_.Hear(fd); });
  if (linger_timer_ != 0) loop_.Cancel(std::exchange(linger_timer_, 0));
}

void Server::Drop(int fd) {
  loop_.Unwatch(fd);
  connections_.erase(fd);
  if (connections_.empty()) ArmLinger();
}

// Workers stay connected while they live, so nobody connected means nobody's memory.
void Server::ArmLinger() {
  linger_timer_ = loop_.After(linger_s_ * 1'000'000, [this] {
    common::Log("keeper", "no daemon and no worker for a while; exiting");
    loop_.Quit();
  });
}

bool Server::Hear(int fd) {
  if (connections_.count(fd) == 0) return false;
  Connection* const connection = &connections_[fd];
  const absl::Status heard = connection->worker.has_value()
                                 ? ReceiveFrom<wire::WorkerToKeeper>(connection)
                                 : ReceiveFrom<wire::ToKeeper>(connection);
  if (heard.ok()) return true;
  if (absl::IsDeadlineExceeded(heard)) return false;
  if (!absl::IsUnavailable(heard)) common::Log("keeper", heard.ToString());
  Drop(fd);
  return false;
}

template <class Direction>
absl::Status Server::ReceiveFrom(Connection* connection) {
  absl::StatusOr<wire::Received<Direction>> received =
      wire::Receive<Direction>(connection->socket.get(), 0);
  if (received.ok()) Handle(connection, &*received);
  return received.status();
}

void Server::HearOthers() { hearing_.HearOthers(connections_); }

void Server::AnswerQuery(int fd) {
  HearOthers();
  (void)wire::Send<wire::KeeperToDaemon>(fd, keeper_->Describe());
  for (const wire::UsageList& list : keeper_->Usages())
    (void)wire::Send<wire::KeeperToDaemon>(fd, list);
  (void)wire::Send<wire::KeeperToDaemon>(fd, wire::ListEnd{});
}

void Server::AnswerList(int fd, const wire::Owner& owner) {
  HearOthers();
  for (const wire::ExtentList& part : keeper_->List(owner))
    (void)wire::Send<wire::KeeperToWorker>(fd, part);
  (void)wire::Send<wire::KeeperToWorker>(fd, wire::ListEnd{});
}

void Server::ReleaseWorker(uint32_t worker) {
  HearOthers();
  const uint64_t bytes = keeper_->ReleaseWorker(worker);
  common::Log("keeper", absl::StrCat("worker ", worker, " is gone: freed ", bytes, " bytes"));
}

void Server::Reply(int fd, const wire::ExtentReply& reply, const ipc::UniqueFd& extent) {
  const int fds[] = {extent.get()};
  (void)wire::Send<wire::KeeperToWorker>(
      fd, reply, extent.valid() ? std::span<const int>(fds) : std::span<const int>());
}

void Server::Handle(Connection* connection, wire::Received<wire::ToKeeper>* received) {
  std::visit(ipc::Overloaded{
                 [&](const wire::Register& hello) { connection->worker = hello.worker; },
                 [&](const wire::Query&) { AnswerQuery(connection->socket.get()); },
                 [&](const wire::ReleaseWorker& gone) { ReleaseWorker(gone.worker); },
                 [&](const wire::ReleaseOwner& ended) {
                   HearOthers();
                   keeper_->ReleaseOwner(ended.owner);
                 },
                 [&](const wire::CountOutside& count) { keeper_->CountOutside(count); },
                 [&](const wire::Stop&) { loop_.Quit(); },
             },
             received->message);
}

void Server::Handle(Connection* connection, wire::Received<wire::WorkerToKeeper>* received) {
  const int fd = connection->socket.get();
  const uint32_t worker = *connection->worker;
  ipc::UniqueFd extent;
  std::visit(ipc::Overloaded{
                 [&](const wire::CreateExtent& create) {
                   const wire::ExtentReply reply = keeper_->Create(worker, create.extent, &extent);
                   Reply(fd, reply, extent);
                 },
                 [&](const wire::ImportExtent& import) {
                   const wire::ExtentReply reply = keeper_->Import(worker, import.id, &extent);
                   Reply(fd, reply, extent);
                 },
                 [&](const wire::AdoptExtent& adopt) {
                   if (!received->fds.empty()) extent = std::move(received->fds[0]);
                   const uint32_t result = keeper_->Adopt(worker, adopt.extent, extent);
                   Reply(fd, {adopt.extent.id, result, 0}, {});
                 },
                 [&](const wire::FreeExtent& free) { keeper_->Free(worker, free.id); },
                 [&](const wire::DropExtent& drop) { keeper_->Drop(worker, drop.id); },
                 [&](const wire::ChangeOwner& change) { keeper_->ChangeOwner(worker, change); },
                 [&](const wire::ClaimLane& claim) { keeper_->Claim(worker, claim.lane); },
                 [&](const wire::ListExtents& list) { AnswerList(fd, list.owner); },
                 [&](const wire::GetMemory& memory) {
                   HearOthers();
                   (void)wire::Send<wire::KeeperToWorker>(fd, keeper_->Memory(memory.device));
                 },
             },
             received->message);
}

}  // namespace keeper
