// lanewayd: one per runtime directory. See daemon.h for what it does.
#include <fcntl.h>
#include <signal.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/common/heap.h"
#include "daemon/control/child_processes.h"
#include "daemon/control/daemon.h"
#include "ipc/command_line.h"
#include "ipc/options.h"
#include "ipc/runtime_dir.h"
#include "ipc/socket.h"

namespace control {
namespace {

constexpr int kUsageExitCode = 2;
constexpr size_t kLogBytesMax = 1 << 20;

// Tells the starter, on `ready_fd` when there is one, else on stderr. An empty sentence:
// ready.
void Tell(int ready_fd, const std::string& sentence) {
  const std::string line =
      sentence.empty() ? "ready\n" : absl::StrCat("lanewayd: ", sentence, "\n");
  if (ready_fd >= 0) {
    (void)!write(ready_fd, line.data(), line.size());
    close(ready_fd);
  } else if (!sentence.empty()) {
    std::fputs(line.c_str(), stderr);
  }
}

// The lock is held as long as the process lives. Other processes can ask for its holder without
// taking it.
// FailedPrecondition: another daemon holds it.
absl::StatusOr<ipc::UniqueFd> TakeLock(const std::string& dir) {
  const std::string path = ipc::LockPath(dir);
  ipc::UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot open ", path, ": ", std::strerror(errno)));
  }
  struct flock whole {};
  whole.l_type = F_WRLCK;
  if (fcntl(fd.get(), F_OFD_SETLK, &whole) != 0) {
    char pid[32] = {};
    (void)!pread(fd.get(), pid, sizeof pid - 1, 0);
    return absl::FailedPreconditionError(
        absl::StrCat("a daemon (pid ", std::strtol(pid, nullptr, 10), ") already serves ", dir,
                     "; use it, or run laneway stop first"));
  }
  const std::string pid = absl::StrCat(getpid(), "\n");
  if (ftruncate(fd.get(), 0) != 0 || pwrite(fd.get(), pid.data(), pid.size(), 0) < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
  }
  return fd;
}

void SetUpLog(const ipc::Options& options, bool foreground) {
  std::vector<spdlog::sink_ptr> sinks = {std::make_shared<spdlog::sinks::rotating_file_sink_mt>(
      ipc::LogPath(options.runtime_dir, "lanewayd"), kLogBytesMax, 1)};
  if (foreground) sinks.push_back(std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("lanewayd", sinks.begin(), sinks.end()));
  spdlog::set_level(spdlog::level::from_str(options.log_level));
  spdlog::flush_on(std::min(spdlog::default_logger()->level(), spdlog::level::info));
}

int Serve(ipc::Options options, int ready_fd) {
  if (options.runtime_dir.empty()) options.runtime_dir = ipc::RuntimeDir();
  if (const absl::Status made = ipc::MakeRuntimeDir(options.runtime_dir); !made.ok()) {
    Tell(ready_fd, std::string(made.message()));
    return 1;
  }
  absl::StatusOr<ipc::UniqueFd> lock = TakeLock(options.runtime_dir);
  if (!lock.ok()) {
    Tell(ready_fd, std::string(lock.status().message()));
    return 1;
  }
  SetUpLog(options, ready_fd < 0);
  ipc::RaiseDescriptorLimit();
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, nullptr);  // before any thread is made
  const ipc::UniqueFd signal_fd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));

  std::string failure;
  common::EventLoop loop;
  ChildProcesses children({options.runtime_dir, options.device, options.linger_s, options.scrub,
                           ipc::BytesOption(options.swap, -1)},
                          &loop);
  Daemon daemon(options, &loop, &children, [ready_fd, &failure](const std::string& sentence) {
    failure = sentence;
    if (failure.empty()) Tell(ready_fd, failure);
  });
  loop.Watch(signal_fd.get(), [&daemon, &signal_fd] {
    signalfd_siginfo info;
    if (read(signal_fd.get(), &info, sizeof info) > 0) daemon.OnTerminate();
  });
  int code = 1;
  if (const absl::Status listening = daemon.Listen(); listening.ok()) {
    code = daemon.Run();
  } else {
    failure = std::string(listening.message());
  }
  if (failure.empty()) return code;
  lock->Reset();  // the starter must not find a daemon that is about to end
  Tell(ready_fd, failure);
  return code;
}

}  // namespace
}  // namespace control

int main(int argc, char** argv) {
  common::BoundHeap();
  umask(077);  // whatever we and our children make is this user's alone
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a file size limit is an error to report, not an end
  ipc::Options options;
  int ready_fd = -1;
  CLI::App app("Lets unmodified CUDA programs share a GPU. Started by `laneway run`.", "lanewayd");
  app.set_version_flag("--version", std::string("lanewayd ") + LANEWAY_VERSION);
  app.add_option("--ready-fd", ready_fd, "a descriptor to say on that it is ready")->group("");
  if (const absl::Status config = ipc::ReadConfig(&options); !config.ok()) {
    std::fprintf(stderr, "lanewayd: %s\n", std::string(config.message()).c_str());
    return control::kUsageExitCode;
  }
  ipc::AddFlags(&app, &options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& wanted) {
    return app.exit(wanted);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "lanewayd: %s\n", ipc::SentenceOf(app, error).c_str());
    return control::kUsageExitCode;
  }
  return control::Serve(options, ready_fd);
}
