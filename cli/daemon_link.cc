#include "cli/daemon_link.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "cli/read_line.h"
#include "ipc/environment.h"
#include "ipc/install.h"
#include "ipc/job_options.h"
#include "ipc/runtime_dir.h"
#include "ipc/socket.h"
#include "ipc/unique_fd.h"
#include "ipc/zmq_control.h"

namespace cli {
namespace {

constexpr int64_t kStartTimeoutUs = 60'000'000;  // a GPU's driver may take half of it
constexpr int64_t kAskTimeoutUs = 10'000'000;
constexpr int64_t kTellTimeoutUs = 1'000'000;
constexpr size_t kCommandBytesMax = 1024;
constexpr size_t kReadyBytesMax = 1 << 20;
constexpr int kStartAttemptsMax = 5;  // a daemon may end of itself while we ask

// Arguments may be in any encoding.
std::string DumpJson(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// In the child of a fork. The daemon belongs to no terminal and to no parent.
[[noreturn]] void BecomeDaemon(char* const* argv, char* const* environment, int ready_fd) {
  setsid();
  if (fork() != 0) _exit(0);
  const int null_fd = open("/dev/null", O_RDWR);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null_fd, standard);
  ipc::PassOnly(ready_fd);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (chdir("/") == 0) execve(argv[0], argv, environment);
  _exit(1);
}

absl::Status StartDaemon(const ipc::Options& options, const std::string& dir) {
  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC) != 0) return absl::ResourceExhaustedError("pipe failed");
  const ipc::UniqueFd read_end(pipe_fds[0]);
  ipc::UniqueFd write_end(pipe_fds[1]);
  const std::string path = ipc::BinaryPath("lanewayd");
  if (access(path.c_str(), X_OK) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot start ", path, ": ", std::strerror(errno), "; install Laneway completely"));
  }
  std::vector<std::string> words = {path};
  for (const std::string& argument : ipc::AsArguments(options)) words.push_back(argument);
  words.push_back(absl::StrCat("--ready-fd=", ipc::kPassedFd));
  std::vector<std::string> environment = ipc::WithoutFacades(environ, ipc::LibraryRoot());
  ipc::SetVariable(&environment, ipc::kRuntimeDirVariable, dir);
  const std::vector<char*> argv = ipc::PointersOf(&words);
  const std::vector<char*> envp = ipc::PointersOf(&environment);
  const pid_t pid = fork();
  if (pid < 0) return absl::ResourceExhaustedError(absl::StrCat("fork: ", std::strerror(errno)));
  if (pid == 0) BecomeDaemon(argv.data(), envp.data(), write_end.get());
  write_end.Reset();
  waitpid(pid, nullptr, 0);
  const std::optional<std::string> line = ReadLine(read_end.get(), kStartTimeoutUs, kReadyBytesMax);
  if (!line.has_value())
    return absl::DeadlineExceededError("lanewayd does not get ready; see its log");
  if (*line == "ready\n") return absl::OkStatus();
  absl::string_view reason = absl::StripSuffix(*line, "\n");
  absl::ConsumePrefix(&reason, "lanewayd: ");
  return absl::FailedPreconditionError(
      reason.empty()
          ? absl::StrCat("lanewayd ended while it started; see ", ipc::LogPath(dir, "lanewayd"))
          : std::string(reason));
}

}  // namespace

bool DaemonLives(const std::string& runtime_dir) {
  const ipc::UniqueFd fd(open(ipc::LockPath(runtime_dir).c_str(), O_RDONLY | O_CLOEXEC));
  // Asked for, not taken: a daemon that starts at this moment must not meet a lock of ours.
  struct flock whole {};
  whole.l_type = F_RDLCK;
  return fd.valid() && fcntl(fd.get(), F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
}

bool LeftoversLive(const std::string& runtime_dir) {
  if (ipc::ConnectTo(ipc::KeeperSocketPath(runtime_dir)).ok()) return true;
  for (const uint32_t worker : ipc::WorkerSocketsIn(runtime_dir)) {
    if (ipc::ConnectTo(ipc::WorkerSocketPath(runtime_dir, worker)).ok()) return true;
  }
  return false;
}

absl::Status EnsureDaemon(const ipc::Options& options) {
  const std::string dir = options.runtime_dir.empty() ? ipc::RuntimeDir() : options.runtime_dir;
  const absl::Status usable = ipc::CheckRuntimeDir(dir);
  if (!usable.ok() && !absl::IsNotFound(usable)) return usable;
  if (usable.ok() && DaemonLives(dir)) return absl::OkStatus();
  const absl::Status started = StartDaemon(options, dir);
  // Someone else was faster: theirs is as good.
  if (!started.ok() && ipc::CheckRuntimeDir(dir).ok() && DaemonLives(dir)) return absl::OkStatus();
  return started;
}

absl::StatusOr<std::string> Ask(const std::string& runtime_dir, const std::string& request,
                                int64_t timeout_us) {
  const absl::Status usable = ipc::CheckRuntimeDir(runtime_dir);
  if (!usable.ok() && !absl::IsNotFound(usable)) return usable;
  if (!usable.ok() || !DaemonLives(runtime_dir)) {
    return absl::NotFoundError(
        absl::StrCat("no daemon runs in ", runtime_dir, "; laneway run -- PROGRAM starts one"));
  }
  const absl::StatusOr<std::string> reply =
      ipc::AskControl(ipc::ControlEndpoint(runtime_dir), request, timeout_us,
                      [&runtime_dir] { return DaemonLives(runtime_dir); });
  if (!reply.ok()) {
    if (!DaemonLives(runtime_dir)) return absl::NotFoundError("the daemon has just ended");
    return absl::DeadlineExceededError(absl::StrCat("the daemon in ", runtime_dir,
                                                    " does not answer; see ",
                                                    ipc::LogPath(runtime_dir, "lanewayd")));
  }
  const nlohmann::json parsed = nlohmann::json::parse(*reply, nullptr, false);
  if (!parsed.is_object()) return absl::InternalError("the daemon's answer is no JSON");
  if (!parsed.value("ok", false)) {
    return absl::FailedPreconditionError(parsed.value("sentence", "the daemon refuses"));
  }
  return reply;
}

absl::StatusOr<Job> NewJob(const ipc::Options& options, const std::vector<std::string>& command) {
  const std::string dir = options.runtime_dir.empty() ? ipc::RuntimeDir() : options.runtime_dir;
  const char* const outer = std::getenv(ipc::kJobVariable);
  const nlohmann::json ask = {{"command", "job"},
                              {"pid", getpid()},
                              {"bytes", static_cast<uint64_t>(ipc::BytesOption(options.memory, 0))},
                              {"ticket", outer == nullptr ? "" : outer},
                              {"terms", ipc::TermsJson(ipc::TermsOf(options))},
                              {"text", absl::StrJoin(command, " ").substr(0, kCommandBytesMax)}};
  const std::string request = DumpJson(ask);
  absl::Status last;
  for (int attempt = 0; attempt < kStartAttemptsMax; ++attempt) {
    last = EnsureDaemon(options);
    if (!last.ok()) return last;
    // One that starts answers when it knows its device.
    const absl::StatusOr<std::string> reply = Ask(dir, request, kStartTimeoutUs);
    if (reply.ok()) {
      const nlohmann::json answer = nlohmann::json::parse(*reply);
      const std::string device = answer.value("device", "");
      if (options.device != "auto" && options.device != device) {
        return absl::FailedPreconditionError(
            absl::StrCat("the daemon that runs serves --device=", device, ", not ", options.device,
                         "; run laneway stop first"));
      }
      return Job{answer.value("job", uint64_t{0}), answer.value("ticket", ""), device,
                 answer.value("devices", std::vector<unsigned>())};
    }
    last = reply.status();
    if (!absl::IsNotFound(last)) return last;
  }
  return last;
}

void TellExit(const std::string& runtime_dir, uint64_t job, int code) {
  const nlohmann::json told = {{"command", "exited"}, {"id", job}, {"code", code}};
  (void)Ask(runtime_dir, told.dump(), kTellTimeoutUs);
}

}  // namespace cli
