#include "daemon/keeper/server.h"

#include <sys/stat.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/common/child_main.h"
#include "ipc/runtime_dir.h"

namespace keeper {

using ipc::control::Send;

absl::Status Server::Listen(const std::string& runtime_dir) {
  absl::StatusOr<ipc::UniqueFd> listener = ipc::ListenAt(ipc::KeeperSocketPath(runtime_dir));
  if (!listener.ok()) return listener.status();
  acceptor_.Listen(
      std::move(*listener), [this](ipc::UniqueFd socket) { Add(std::move(socket)); },
      [](const std::string& sentence) { common::Log("keeper", sentence); });
  return absl::OkStatus();
}

void Server::Greet(ipc::UniqueFd connection) {
  if (Send(connection.get(), keeper_->Describe()).ok()) Add(std::move(connection));
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
  absl::StatusOr<ipc::control::Received> received = ipc::control::Receive(fd, 0);
  if (absl::IsDeadlineExceeded(received.status())) return false;
  if (!received.ok()) {
    if (!absl::IsUnavailable(received.status())) {
      common::Log("keeper", received.status().ToString());
    }
    Drop(fd);
    return false;
  }
  Handle(&connections_[fd], &*received);
  return true;
}

void Server::HearOthers() { hearing_.HearOthers(connections_); }

void Server::AnswerQuery(int fd) {
  HearOthers();
  (void)Send(fd, keeper_->Describe());
  for (const ipc::control::UsageList& list : keeper_->Usages()) (void)Send(fd, list);
  (void)Send(fd, ipc::control::ListEnd{});
}

void Server::Reply(int fd, const ipc::control::ExtentReply& reply, const ipc::UniqueFd& extent) {
  const int fds[] = {extent.get()};
  (void)Send(fd, reply, extent.valid() ? std::span<const int>(fds) : std::span<const int>());
}

void Server::Handle(Connection* connection, ipc::control::Received* received) {
  const int fd = connection->socket.get();
  const ipc::control::Message& message = received->message;
  if (const ipc::control::Register* hello = std::get_if<ipc::control::Register>(&message)) {
    connection->is_worker = true;
    connection->worker = hello->worker;
  } else if (std::holds_alternative<ipc::control::Query>(message)) {
    AnswerQuery(fd);
  } else if (const ipc::control::ReleaseWorker* gone =
                 std::get_if<ipc::control::ReleaseWorker>(&message)) {
    HearOthers();
    const uint64_t bytes = keeper_->ReleaseWorker(gone->worker);
    common::Log("keeper",
                absl::StrCat("worker ", gone->worker, " is gone: freed ", bytes, " bytes"));
  } else if (const ipc::control::ReleaseOwner* ended =
                 std::get_if<ipc::control::ReleaseOwner>(&message)) {
    HearOthers();
    keeper_->ReleaseOwner(ended->owner);
  } else if (const ipc::control::CountOutside* count =
                 std::get_if<ipc::control::CountOutside>(&message)) {
    keeper_->CountOutside(*count);
  } else if (std::holds_alternative<ipc::control::Stop>(message)) {
    loop_.Quit();
  } else if (const ipc::control::GetMemory* memory =
                 std::get_if<ipc::control::GetMemory>(&message)) {
    HearOthers();
    (void)Send(fd, keeper_->Memory(memory->device));
  } else if (connection->is_worker) {
    HandleWorker(*connection, received);
  } else {
    common::Log("keeper", "a message that only workers may send, or none that is known");
  }
}

void Server::HandleWorker(const Connection& worker, ipc::control::Received* received) {
  const int fd = worker.socket.get();
  const ipc::control::Message& message = received->message;
  ipc::UniqueFd extent;
  if (const ipc::control::CreateExtent* create =
          std::get_if<ipc::control::CreateExtent>(&message)) {
    const ipc::control::ExtentReply reply = keeper_->Create(worker.worker, create->extent, &extent);
    Reply(fd, reply, extent);
  } else if (const ipc::control::ImportExtent* import =
                 std::get_if<ipc::control::ImportExtent>(&message)) {
    const ipc::control::ExtentReply reply = keeper_->Import(worker.worker, import->id, &extent);
    Reply(fd, reply, extent);
  } else if (const ipc::control::AdoptExtent* adopt =
                 std::get_if<ipc::control::AdoptExtent>(&message)) {
    if (!received->fds.empty()) extent = std::move(received->fds[0]);
    const uint32_t result = keeper_->Adopt(worker.worker, adopt->extent, extent);
    Reply(fd, {adopt->extent.id, result, 0}, {});
  } else if (const ipc::control::FreeExtent* free =
                 std::get_if<ipc::control::FreeExtent>(&message)) {
    keeper_->Free(worker.worker, free->id);
  } else if (const ipc::control::DropExtent* drop =
                 std::get_if<ipc::control::DropExtent>(&message)) {
    keeper_->Drop(worker.worker, drop->id);
  } else if (const ipc::control::ChangeOwner* change =
                 std::get_if<ipc::control::ChangeOwner>(&message)) {
    keeper_->ChangeOwner(worker.worker, *change);
  } else if (const ipc::control::ListExtents* list =
                 std::get_if<ipc::control::ListExtents>(&message)) {
    HearOthers();
    for (const ipc::control::ExtentList& part : keeper_->List(list->owner)) (void)Send(fd, part);
    (void)Send(fd, ipc::control::ListEnd{});
  } else {
    common::Log("keeper", "a message that no worker of this version sends");
  }
}

}  // namespace keeper
