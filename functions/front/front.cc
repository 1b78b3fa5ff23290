#include "functions/front/front.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "functions/serving/stream_socket.h"
#include "ipc/install.h"
#include "ipc/socket.h"

namespace functions {
namespace {

// Of one read: more bytes come with the next turn of the loop, so that no client holds up others.
constexpr size_t kReadBytes = 64u << 10;

Bytes Sentence(AnswerStatus status, std::string sentence) {
  return EncodeAnswer({status, {}, std::move(sentence)});
}

sigset_t EndSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

// Reads the bytes that the client has sent, up to the reader's bound. False: the client is gone.
bool Receive(int socket, FrameReader* reader) {
  Bytes room(kReadBytes);
  for (;;) {
    const ssize_t got = recv(socket, room.data(), room.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0 || !reader->AddUntrusted(std::span(room).first(static_cast<size_t>(got))))
      return false;
    if (static_cast<size_t>(got) < room.size()) return true;
  }
}

}  // namespace

absl::Status Front::Serve(const std::string& name, const std::string& socket_path) {
  Front front(name, socket_path);
  if (const absl::Status started = front.Start(); !started.ok()) return started;
  front.Loop();
  return front.first_start_;
}

Front::~Front() {
  EndEngine();
  if (listener_.valid()) (void)unlink(socket_path_.c_str());
}

absl::Status Front::Start() {
  const sigset_t ends = EndSignals();
  sigprocmask(SIG_BLOCK, &ends, nullptr);
  signals_ = ipc::UniqueFd(signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_.valid()) return absl::InternalError("no descriptors left; raise ulimit -n");
  return StartEngine();
}

// Ends when the function cannot be loaded at all, or when a signal came and the last request of the
// clients is answered.
void Front::Loop() {
  while (first_start_.ok() && !(draining_ && queue_.empty())) {
    if (queue_.WantsEngine()) {
      if (const absl::Status started = StartEngine(); !started.ok())
        OnEngineLost(std::string(started.message()));
    }
    SendNext();
    Poll();
  }
}

void Front::Poll() {
  std::vector<pollfd> entries = {{signals_.get(), POLLIN, 0},
                                 {draining_ ? -1 : listener_.get(), POLLIN, 0},
                                 {engine_.socket.get(), POLLIN, 0}};
  std::vector<Id> ids;
  for (const auto& [id, connection] : connections_) {
    // One that waits is not read: its next request keeps in the socket.
    const short wanted = static_cast<short>((connection.waits ? 0 : POLLIN) |
                                            (connection.unsent.empty() ? 0 : POLLOUT));
    entries.push_back({connection.socket.get(), wanted, 0});
    ids.push_back(id);
  }
  if (poll(entries.data(), entries.size(), -1) < 0) return;
  if (entries[0].revents != 0) {
    signalfd_siginfo ignored;
    (void)!read(signals_.get(), &ignored, sizeof ignored);
    draining_ = true;
    listener_.Reset();
    (void)unlink(socket_path_.c_str());
  }
  if (entries[2].revents != 0) OnEngine();
  for (size_t i = 0; i < ids.size(); ++i) {
    const short seen = entries[3 + i].revents;
    if ((seen & POLLOUT) != 0) OnWritable(ids[i]);
    if ((seen & POLLIN) != 0) OnReadable(ids[i]);
    if ((seen & (POLLERR | POLLHUP | POLLNVAL)) != 0 && (seen & POLLIN) == 0) Close(ids[i]);
  }
  if (!draining_ && entries[1].revents != 0) Accept();
}

// --- the engine ----------------------------------------------------------------------------------

// The engine is a program of its own, not a fork: the front has the client's libraries preloaded,
// and a fork of a process that uses CUDA could not use CUDA.
absl::Status Front::StartEngine() {
  queue_.OnStart();
  absl::StatusOr<std::pair<ipc::UniqueFd, ipc::UniqueFd>> pair = StreamPair();
  if (!pair.ok()) return pair.status();
  const std::string path = ipc::BinaryPath("laneway-function");
  const std::string end = absl::StrCat(ipc::kPassedFd);
  char* const words[] = {const_cast<char*>(path.c_str()), const_cast<char*>("engine"),
                         const_cast<char*>(name_.c_str()), const_cast<char*>(end.c_str()), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pair->second.get(), ipc::kPassedFd);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  // A terminal's Ctrl-C is for the front, which lets the engine finish.
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  const int error = posix_spawn(&engine_.pid, path.c_str(), &actions, &attributes, words, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    engine_.pid = 0;
    return absl::InternalError(absl::StrCat("cannot start ", path, ": ", std::strerror(error)));
  }
  engine_.socket = std::move(pair->first);
  engine_.reader = {};
  return absl::OkStatus();
}

void Front::OnEngine() {
  const bool lives = Receive(engine_.socket.get(), &engine_.reader);
  std::span<const std::byte> body;
  if (engine_.reader.Peek(&body)) return OnEngineFrame(engine_.reader.Take());
  if (!lives) OnEngineLost("its engine has ended; laneway status may say why");
}

void Front::OnEngineFrame(const Bytes& frame) {
  functions::Answer answer;
  const std::span<const std::byte> body = std::span(frame).subspan(sizeof(uint32_t));
  if (!DecodeAnswerUntrusted(body, &answer)) return OnEngineLost("its engine answers nonsense");
  if (answer.status == AnswerStatus::kFailed) return OnEngineLost(answer.sentence);
  // The first frame of an engine says that the function is loaded; all others are answers.
  if (queue_.state() == EngineState::kBusy) return Answer(queue_.OnAnswer(), frame);
  queue_.OnReady();
  if (!std::exchange(is_first_start_, false)) return;
  absl::StatusOr<ipc::UniqueFd> listener = Listen(socket_path_);
  if (!listener.ok()) {
    first_start_ = listener.status();
    return;
  }
  listener_ = *std::move(listener);
  std::printf("serving %s at %s\n", name_.c_str(), socket_path_.c_str());
  std::fflush(stdout);
}

void Front::OnEngineLost(const std::string& sentence) {
  EndEngine();
  if (is_first_start_) {
    first_start_ = absl::FailedPreconditionError(sentence);
    return;
  }
  const std::optional<Id> failed = queue_.OnLost();
  if (failed.has_value())
    Answer(*failed, Sentence(AnswerStatus::kFailed,
                             absl::StrCat("the function could not be run: ", sentence)));
}

// By SIGKILL: the function has no state to save, and the worker sees the end by itself.
void Front::EndEngine() {
  engine_.socket.Reset();
  if (const pid_t pid = std::exchange(engine_.pid, 0); pid != 0) {
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, nullptr, 0);
  }
}

void Front::SendNext() {
  const std::optional<Id> next = queue_.TakeNext();
  if (next.has_value() && !WriteAll(engine_.socket.get(), requests_[*next]))
    OnEngineLost("its engine has ended; laneway status may say why");
}

// --- clients -------------------------------------------------------------------------------------

void Front::Accept() {
  ipc::UniqueFd client = AcceptOwn(listener_.get());
  if (!client.valid()) return;
  if (connections_.size() >= ipc::limits::kFunctionClientsMax) {
    const Bytes full =
        Sentence(AnswerStatus::kRefused, "too many clients are connected; try again later");
    (void)send(client.get(), full.data(), full.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    return;
  }
  connections_[++last_id_].socket = std::move(client);
}

void Front::OnReadable(Id id) {
  const std::map<Id, Connection>::iterator found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  if (!Receive(connection.socket.get(), &connection.reader)) {
    std::span<const std::byte> body;
    if (!connection.reader.Peek(&body)) return Close(id);
  }
  QueueNext(id);
}

void Front::QueueNext(Id id) {
  Connection& connection = connections_[id];
  std::span<const std::byte> body;
  if (connection.waits || !connection.reader.Peek(&body)) return;
  requests_[id] = connection.reader.Take();
  // Until the answer the connection is not read: a client that sends on and on fills the socket's
  // buffer, and not the front's memory.
  connection.waits = true;
  if (!queue_.Add(id))
    Answer(id, Sentence(AnswerStatus::kRefused, "too many requests wait; try again later"));
}

void Front::Answer(Id id, Bytes frame) {
  requests_.erase(id);
  const std::map<Id, Connection>::iterator found = connections_.find(id);
  if (found == connections_.end()) return;  // it has left
  found->second.waits = false;
  Bytes& unsent = found->second.unsent;
  unsent.insert(unsent.end(), frame.begin(), frame.end());
  OnWritable(id);
  if (connections_.count(id) != 0) QueueNext(id);
}

void Front::OnWritable(Id id) {
  const std::map<Id, Connection>::iterator found = connections_.find(id);
  if (found == connections_.end()) return;
  Bytes& unsent = found->second.unsent;
  const ssize_t sent =
      send(found->second.socket.get(), unsent.data(), unsent.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN && errno != EINTR) return Close(id);
  if (sent > 0) unsent.erase(unsent.begin(), unsent.begin() + sent);
}

void Front::Close(Id id) {
  queue_.Remove(id);
  connections_.erase(id);
  // Another engine may have to be told the request that this one works on.
  if (!queue_.IsAtEngine(id)) requests_.erase(id);
}

}  // namespace functions
