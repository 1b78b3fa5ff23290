// How a program becomes a session: hello, admission, slot and files, worker, welcome.
#include "ipc/calls/vendor.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/control/daemon.h"
#include "daemon/control/greeting.h"
#include "ipc/session_file.h"
#include "ipc/socket.h"

namespace control {
namespace {

constexpr int64_t kHelloTimeoutUs = 10'000'000;

std::span<const std::byte> BytesOf(const ipc::Welcome& welcome) {
  return {reinterpret_cast<const std::byte*>(&welcome), sizeof welcome};
}

}  // namespace

// A program says hello at once. So the oldest connection without a hello makes room for a new one.
void Daemon::AcceptClient(ipc::UniqueFd socket) {
  if (greeting_.size() >= kGreetingsMax) {
    const auto older = [](const std::pair<const int, Greeting>& a,
                          const std::pair<const int, Greeting>& b) {
      return a.second.number < b.second.number;
    };
    DropGreeting(std::min_element(greeting_.begin(), greeting_.end(), older)->first);
  }
  const int fd = socket.get();
  Greeting& greeting = greeting_[fd];
  greeting.socket = std::move(socket);
  greeting.number = ++greeted_;
  greeting.timer = loop_->After(kHelloTimeoutUs, [this, fd] { DropGreeting(fd); });
  loop_->Watch(fd, [this, fd] { OnHello(fd); });
}

void Daemon::DropGreeting(int fd) {
  const std::map<int, Greeting>::iterator found = greeting_.find(fd);
  loop_->Cancel(found->second.timer);
  loop_->Unwatch(fd);
  greeting_.erase(found);
}

void Daemon::OnHello(int fd) {
  const std::map<int, Greeting>::iterator found = greeting_.find(fd);
  if (found == greeting_.end()) return;
  const absl::StatusOr<ipc::Packet> packet = ipc::ReceivePacket(fd, 0);
  if (absl::IsDeadlineExceeded(packet.status())) return;
  ipc::UniqueFd socket = std::move(found->second.socket);
  loop_->Cancel(found->second.timer);
  loop_->Unwatch(fd);
  greeting_.erase(found);
  const absl::StatusOr<ipc::Peer> peer = ipc::PeerOf(fd);
  if (!packet.ok() || !peer.ok()) return;
  ipc::Hello hello;
  ipc::Welcome welcome;
  absl::StatusOr<ipc::UniqueFd> pidfd = ipc::PeerPidfd(fd, *peer);
  if (CheckHelloUntrusted(packet->bytes, peer->uid, geteuid(), &hello, &welcome) && !pidfd.ok()) {
    Refuse(&welcome, CUDA_ERROR_NOT_PERMITTED,
           absl::StrCat("the program can't be watched (", std::string(pidfd.status().message()),
                        "); run it in the daemon's pid namespace"));
  }
  if (stopping_) Refuse(&welcome, CUDA_ERROR_MPS_CONNECTION_FAILED, "the daemon is stopping");
  if (welcome.result == 0) {
    Arrive(hello, *peer, std::move(socket), std::move(*pidfd));
    return;
  }
  spdlog::info("pid {} is refused: {}", peer->pid, welcome.sentence);
  (void)ipc::SendPacket(fd, BytesOf(welcome));
}

void Daemon::Arrive(const ipc::Hello& hello, const ipc::Peer& peer, ipc::UniqueFd socket,
                    ipc::UniqueFd pidfd) {
  ipc::control::SessionRecord record;
  const bool in_process = hello.mode == ipc::Mode::kInProcess;
  const uint64_t goes_on = in_process ? ForgetEarlier(peer.pid, hello) : 0;
  record.session_id = goes_on != 0 ? goes_on : sessions_.NewId();
  record.job = JobOf(hello.job);
  record.pid = peer.pid;
  record.uid = peer.uid;
  record.transport = hello.transport;
  record.tables = ipc::CommonTables(hello.tables);
  ipc::control::SetText(record.program, hello.program);
  record.device = FirstDeviceOf(record.job.scheduling);
  record.contained =
      hello.mode == ipc::Mode::kContained || placement_.IsQuarantined(record.uid, record.program)
          ? 1
          : 0;
  Session* const session = sessions_.Add(record);
  session->socket = std::move(socket);
  session->pidfd = std::move(pidfd);
  session->in_process = in_process;
  if (goes_on != 0) session->claimed_bytes = hello.held_bytes;
  WatchClient(session);
  observers_.Begin(*session);
  UpdateLinger();
  if (!scheduler_.serving()) return;  // OnChildrenReady comes back to it
  NoticeEnding();
  Enlist(*session);
}

void Daemon::Enlist(const Session& session) {
  if (session.claimed_bytes.has_value()) {
    AdoptProgram(session.record.session_id);
  } else {
    scheduler_.Apply(Describe(session));
  }
}

// Without a ticket that holds, a job of its own, on which nobody has laid a limit.
ipc::JobTerms Daemon::JobOf(const ipc::JobTicket& ticket) {
  if (const std::optional<ipc::JobTerms> joined = jobs_.Join(ticket)) return *joined;
  if (ticket.terms.id != 0)
    spdlog::warn("a ticket of job {} is not of this runtime directory", ticket.terms.number);
  ipc::JobTerms own;
  own.number = jobs_.NewNumber();
  return own;
}

// A program that has just ended may not have been noticed yet; its place is then about to come
// free.
void Daemon::NoticeEnding() {
  std::vector<uint64_t> ended;
  for (const std::pair<const uint64_t, Session>& entry : sessions_.all()) {
    if (entry.second.phase != Phase::kEnding && ipc::ProcessEnded(entry.second.pidfd.get())) {
      ended.push_back(entry.first);
    }
  }
  for (const uint64_t id : ended) OnClientEnded(id);
}

void Daemon::WatchClient(Session* session) {
  const uint64_t id = session->record.session_id;
  loop_->Watch(session->pidfd.get(), [this, id] { OnClientEnded(id); });
  if (session->socket.valid())
    loop_->Watch(session->socket.get(), [this, id] { OnClientSocket(id); });
}

// Its program waits for another welcome.
void Daemon::TellQueued(uint64_t id, const std::string& reason) {
  const Session* const session = sessions_.Find(id);
  spdlog::info("session {} {}", id, reason);
  if (session == nullptr || !session->socket.valid()) return;
  ipc::Welcome welcome;
  welcome.session_id = id;
  welcome.queued = 1;
  welcome.tables = ipc::OwnTables();
  ipc::control::SetText(welcome.sentence, reason);
  (void)ipc::SendPacket(session->socket.get(), BytesOf(welcome));
}

void Daemon::Execute(const scheduler::Action& action) {
  if (const scheduler::Admit* admit = std::get_if<scheduler::Admit>(&action)) {
    if (Session* const session = sessions_.Find(admit->session)) Begin(session);
  } else if (const scheduler::Queue* queue = std::get_if<scheduler::Queue>(&action)) {
    TellQueued(queue->session, queue->reason);
  } else if (const scheduler::Reject* reject = std::get_if<scheduler::Reject>(&action)) {
    Session* const session = sessions_.Find(reject->session);
    if (session == nullptr) return;
    Turn(session, CUDA_ERROR_MPS_MAX_CLIENTS_REACHED,
         absl::StrCat(reject->reason, "; end a program or wait for one (laneway ps lists them)"));
  } else {
    PerformGrant(action);
  }
}

absl::Status Daemon::MakeFiles(Session* session) {
  absl::StatusOr<int> file =
      ipc::SessionFile::Create(session->record.session_id, session->record.slot);
  if (!file.ok()) return file.status();
  session->session_fd = ipc::UniqueFd(*file);
  session->page = common::SessionPageMap(*file);
  if (session->in_process) return OnlyPage(*session);
  // Sparse: what is mapped and written takes memory, nothing else does.
  // Sealed: a client that shrinks it would make the worker's copies fault.
  session->pinned_fd =
      ipc::UniqueFd(memfd_create("laneway-pinned", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  session->swap_fd = ipc::UniqueFd(memfd_create("laneway-swap", MFD_CLOEXEC));
  session->progress = common::ProgressMap(session->swap_fd.get());
  if (session->page.get() == nullptr || !session->pinned_fd.valid() ||
      !session->progress.shared() ||
      ftruncate(session->pinned_fd.get(), ipc::limits::kPinnedWindowBytes) != 0 ||
      fcntl(session->pinned_fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) !=
          0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no room for a session's files: ", std::strerror(errno), "; raise ulimit -n"));
  }
  return absl::OkStatus();
}

void Daemon::Begin(Session* session) {
  if (session->in_process) {
    BeginProgram(session);
    return;
  }
  sessions_.TakeSlot(session);
  if (const absl::Status made = MakeFiles(session); !made.ok()) {
    Turn(session, CUDA_ERROR_OPERATING_SYSTEM, std::string(made.message()));
    return;
  }
  if (WorkerFor(*session, *children_) != nullptr) {
    Attach(session);
    return;
  }
  lifecycle_.Transition(session, Phase::kWaiting);
  if (const absl::Status ensured = EnsureWorkerFor(session); !ensured.ok()) {
    Turn(session, CUDA_ERROR_MPS_CONNECTION_FAILED, std::string(ensured.message()));
  }
}

void Daemon::Attach(Session* session) {
  const Worker* const worker = WorkerFor(*session, *children_);
  assert(worker != nullptr);
  lifecycle_.Transition(session, Phase::kAttaching);
  session->worker = worker->number;
  session->page->worker_pid = static_cast<uint32_t>(worker->process.pid);
  SendAttach(*session);
}

void Daemon::SendAttach(const Session& session) {
  const int fds[] = {session.session_fd.get(), session.pinned_fd.get(), session.pidfd.get(),
                     session.swap_fd.get()};
  const absl::Status sent =
      children_->Send(session.worker, ipc::control::AttachSession{session.record}, fds);
  // A send fails when the worker is ending: its pidfd settles the session a moment later.
  if (!sent.ok()) spdlog::warn("worker {}: {}", session.worker, std::string(sent.message()));
}

// Its worker was lost before it served: a new one gets new files, because the old ones may be
// marked lost.
void Daemon::AttachAgain(Session* session) {
  session->has_slot = false;
  Begin(session);
}

void Daemon::Welcome(Session* session, const ipc::control::Attached& attached) {
  ipc::Welcome welcome;
  welcome.session_id = session->record.session_id;
  welcome.slot = session->record.slot;
  const Worker& worker = children_->workers().at(session->worker);
  welcome.worker_pid = static_cast<uint32_t>(worker.process.pid);
  const uint32_t chosen = session->record.job.scheduling.device_count;
  welcome.device_count = chosen != 0 ? chosen : children_->keeper().description.device_count;
  welcome.tables = ipc::OwnTables();
  ipc::control::SetText(welcome.zmq_endpoint, attached.zmq_endpoint);
  const int fds[] = {session->session_fd.get(), session->pinned_fd.get()};
  const absl::Status sent = session->socket.valid()
                                ? ipc::SendPacket(session->socket.get(), BytesOf(welcome), fds)
                                : absl::UnavailableError("it closed its connection");
  lifecycle_.Transition(session, Phase::kRunning);
  TellLane(*session);
  if (sent.ok()) {
    spdlog::info("session {}: {} (pid {}) on worker {}, slot {}", session->record.session_id,
                 session->record.program, session->record.pid, session->worker,
                 session->record.slot);
    return;
  }
  spdlog::info("session {} gave up: {}", session->record.session_id, std::string(sent.message()));
  (void)children_->Send(session->worker, ipc::control::DetachSession{session->record.session_id});
  lifecycle_.Transition(session, Phase::kEnding);
}

void Daemon::TellRefused(const Session& session, unsigned code, const std::string& sentence) {
  ipc::Welcome welcome;
  Refuse(&welcome, code, sentence);
  spdlog::info("session {} ({}) is refused: {}", session.record.session_id, session.record.program,
               welcome.sentence);
  if (session.socket.valid()) (void)ipc::SendPacket(session.socket.get(), BytesOf(welcome));
}

// Sends it away, with a sentence.
void Daemon::Turn(Session* session, unsigned code, const std::string& sentence) {
  TellRefused(*session, code, sentence);
  lifecycle_.Remove(session);
}

void Daemon::OnClientSocket(uint64_t id) {
  Session* const session = sessions_.Find(id);
  if (session == nullptr || !session->socket.valid()) return;
  if (session->in_process && session->phase == Phase::kRunning) {
    OnProgramMessage(session);
    return;
  }
  const absl::StatusOr<ipc::Packet> packet = ipc::ReceivePacket(session->socket.get(), 0);
  if (absl::IsDeadlineExceeded(packet.status())) return;
  if (packet.ok()) return;  // nobody has anything more to say here
  lifecycle_.CloseSocket(session);
  // Before the welcome it means that the program gave up; after it, nothing.
  if (session->phase == Phase::kQueued || session->phase == Phase::kWaiting)
    lifecycle_.Remove(session);
}

void Daemon::OnClientEnded(uint64_t id) {
  Session* const session = sessions_.Find(id);
  if (session == nullptr || !ipc::ProcessEnded(session->pidfd.get())) return;
  loop_->Unwatch(session->pidfd.get());
  lifecycle_.CloseSocket(session);
  if (session->in_process) {  // it was its own worker
    lifecycle_.Remove(session);
    return;
  }
  switch (session->phase) {
    case Phase::kAttaching:
    case Phase::kEntering:
    case Phase::kRunning:  // the worker watches the program, too, and says SessionEnded
      lifecycle_.Transition(session, Phase::kEnding);
      break;
    case Phase::kEnding:
      break;
    case Phase::kQueued:
    case Phase::kWaiting:
    case Phase::kMoving:
    case Phase::kLost:
      lifecycle_.Remove(session);
      break;
  }
}

}  // namespace control
