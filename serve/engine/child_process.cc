#include "serve/engine/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <climits>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace serve::engine {
namespace {

absl::Status NoDescriptors() {
  return absl::UnavailableError("no descriptors left; raise ulimit -n");
}

std::string HowEnded(int status) {
  if (WIFSIGNALED(status)) return absl::StrCat("was killed by signal ", WTERMSIG(status));
  return absl::StrCat("ended with code ", WEXITSTATUS(status));
}

// Above all numbers that a child's descriptors get, so that copying one there overwrites no other.
constexpr int kFirstFreeDescriptor = 16;

absl::Status Spawn(const std::vector<std::string>& command, const std::vector<Descriptor>& passed,
                   pid_t* pid) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (size_t i = 0; i < passed.size(); ++i)
    posix_spawn_file_actions_adddup2(&actions, passed[i].get(),
                                     kEngineSocket + static_cast<int>(i));
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  // A terminal's Ctrl-C is for the front, which lets the engine finish.
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  const int error = posix_spawn(pid, words[0], &actions, &attributes, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error == 0) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot start ", command[0], ": ", std::strerror(error)));
}

}  // namespace

absl::StatusOr<SocketPair> SocketPair::Make(int type) {
  int ends[2];
  if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0) return NoDescriptors();
  return SocketPair{{Descriptor(ends[0]), Descriptor(ends[1])}};
}

absl::StatusOr<ChildProcess> ChildProcess::Start(const std::vector<std::string>& command,
                                                 std::span<const Descriptor> passed) {
  absl::StatusOr<SocketPair> pair = SocketPair::Make(SOCK_STREAM);
  if (!pair.ok()) return pair.status();
  ChildProcess child;
  child.socket_ = std::move(pair->ends[0]);
  // The child's end blocks: an engine has nothing else to do.
  (void)fcntl(child.socket_.get(), F_SETFL, O_NONBLOCK);
  std::vector<Descriptor> copies;
  copies.emplace_back(fcntl(pair->ends[1].get(), F_DUPFD_CLOEXEC, kFirstFreeDescriptor));
  for (const Descriptor& each : passed)
    copies.emplace_back(fcntl(each.get(), F_DUPFD_CLOEXEC, kFirstFreeDescriptor));
  for (const Descriptor& each : copies) {
    if (!each.valid()) return NoDescriptors();
  }
  if (const absl::Status status = Spawn(command, copies, &child.pid_); !status.ok()) {
    child.pid_ = 0;
    return status;
  }
  child.pidfd_ = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, child.pid_, 0)));
  if (!child.pidfd_.valid()) return NoDescriptors();
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)),
      socket_(std::move(other.socket_)),
      pidfd_(std::move(other.pidfd_)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(socket_, other.socket_);
  std::swap(pidfd_, other.pidfd_);
  return *this;
}

ChildProcess::~ChildProcess() {
  if (pid_ == 0) return;
  Kill();
  (void)Reap();
}

// By SIGKILL: an engine has no state to save, and a worker sees the end by itself.
void ChildProcess::Kill() {
  if (pid_ != 0) (void)kill(pid_, SIGKILL);
}

std::string ChildProcess::Reap() {
  int status = 0;
  (void)waitpid(std::exchange(pid_, 0), &status, 0);
  return HowEnded(status);
}

std::string OwnPath() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return length <= 0 ? "" : std::string(path, static_cast<size_t>(length));
}

// When the front has gone before this call, the socket says so.
void EndWithParent() { (void)prctl(PR_SET_PDEATHSIG, SIGKILL); }

}  // namespace serve::engine
