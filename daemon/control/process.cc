#include "daemon/control/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ipc/environment.h"
#include "ipc/install.h"
#include "ipc/runtime_dir.h"
#include "ipc/socket.h"

namespace control {
namespace {

constexpr int kExecFailedCode = 127;

// In the child, between fork and exec: only what is safe there.
[[noreturn]] void BecomeProgram(char* const* argv, char* const* environment, int log_fd,
                                int control_fd) {
  setsid();
  const int null_fd = open("/dev/null", O_RDONLY);
  dup2(null_fd, STDIN_FILENO);
  dup2(log_fd, STDOUT_FILENO);
  dup2(log_fd, STDERR_FILENO);
  ipc::PassOnly(control_fd);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(argv[0], argv, environment);
  _exit(kExecFailedCode);
}

}  // namespace

absl::StatusOr<Process> StartProcess(const ProcessPlan& plan) {
  if (access(plan.path.c_str(), X_OK) != 0) {
    return absl::NotFoundError(absl::StrCat("cannot start ", plan.path, ": ", std::strerror(errno),
                                            "; install or build Laneway completely"));
  }
  absl::StatusOr<std::pair<ipc::UniqueFd, ipc::UniqueFd>> pair = ipc::ConnectedPair();
  if (!pair.ok()) return pair.status();
  const ipc::UniqueFd log(
      open(plan.log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log.valid()) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot write ", plan.log_path, ": ", std::strerror(errno)));
  }
  std::vector<std::string> words = {plan.path};
  words.insert(words.end(), plan.arguments.begin(), plan.arguments.end());
  words.push_back(absl::StrCat("--control-fd=", ipc::kPassedFd));
  std::vector<std::string> environment = ipc::WithoutFacades(environ, ipc::LibraryRoot());
  ipc::SetVariable(&environment, ipc::kRuntimeDirVariable, plan.runtime_dir);
  const std::vector<char*> argv = ipc::PointersOf(&words);
  const std::vector<char*> envp = ipc::PointersOf(&environment);
  const pid_t pid = fork();
  if (pid < 0) return absl::ResourceExhaustedError(absl::StrCat("fork: ", std::strerror(errno)));
  if (pid == 0) BecomeProgram(argv.data(), envp.data(), log.get(), pair->second.get());
  absl::StatusOr<ipc::UniqueFd> pidfd = ipc::OpenPidfd(pid);
  if (!pidfd.ok()) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return pidfd.status();
  }
  return Process{pid, std::move(*pidfd), std::move(pair->first), true};
}

absl::StatusOr<Process> FindProcess(const std::string& socket_path) {
  absl::StatusOr<ipc::UniqueFd> connection = ipc::ConnectTo(socket_path);
  if (!connection.ok()) return connection.status();
  const absl::StatusOr<ipc::Peer> peer = ipc::PeerOf(connection->get());
  if (!peer.ok()) return peer.status();
  absl::StatusOr<ipc::UniqueFd> pidfd = ipc::PeerPidfd(connection->get(), *peer);
  if (!pidfd.ok()) return pidfd.status();
  return Process{peer->pid, std::move(*pidfd), std::move(*connection), false};
}

std::string Reap(const Process& process) {
  if (!process.is_child) return "ended";
  int status = 0;
  if (waitpid(process.pid, &status, WNOHANG) != process.pid) return "ended";
  if (WIFSIGNALED(status)) return absl::StrCat("signal ", WTERMSIG(status));
  return absl::StrCat("exit code ", WEXITSTATUS(status));
}

void Kill(const Process& process) {
  syscall(SYS_pidfd_send_signal, process.pidfd.get(), SIGKILL, nullptr, 0);
}

}  // namespace control
