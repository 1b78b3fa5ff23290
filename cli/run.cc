#include "cli/run.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/daemon_link.h"
#include "cli/frameworks.h"
#include "ipc/environment.h"
#include "ipc/install.h"
#include "ipc/runtime_dir.h"
#include "ipc/unique_fd.h"

namespace cli {
namespace {

// The library that is preloaded. It loads the facades beside it, each for itself (shim/preload.cc).
std::string Preloaded(const ipc::Options& options) {
  return options.mode == "in-process" ? ipc::LibraryPath("inprocess", "liblaneway_preload.so")
                                      : ipc::LibraryPath("shim", "liblaneway_client.so");
}

int Fail(int code, const std::string& sentence) {
  std::fprintf(stderr, "laneway: %s\n", sentence.c_str());
  return code;
}

bool IsProgram(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// As execvp would find it, but before anything is started. On failure the exit code, with *path
// empty.
int FindProgram(const std::string& name, std::string* path) {
  if (name.find('/') != std::string::npos) {
    if (!Exists(name)) {
      return Fail(kNotFound, absl::StrCat("there is no program ", name, "; check the path"));
    }
    if (!IsProgram(name)) {
      return Fail(kNotExecutable,
                  absl::StrCat("cannot execute ", name, "; is it a program? chmod +x"));
    }
    *path = name;
    return 0;
  }
  const char* const search = std::getenv("PATH");
  bool found = false;
  for (const std::string& dir : std::vector<std::string>(
           absl::StrSplit(search == nullptr ? "/usr/local/bin:/usr/bin:/bin" : search, ':'))) {
    const std::string candidate = absl::StrCat(dir.empty() ? "." : dir, "/", name);
    found = found || Exists(candidate);
    if (!IsProgram(candidate)) continue;
    *path = candidate;
    return 0;
  }
  if (found) return Fail(kNotExecutable, absl::StrCat("cannot execute ", name, "; chmod +x"));
  return Fail(kNotFound, absl::StrCat("there is no program ", name, " in PATH; check its name"));
}

void Prepend(std::vector<std::string>* environment, const std::string& name,
             const std::string& value) {
  const std::string prefix = name + "=";
  for (const std::string& entry : *environment) {
    if (entry.compare(0, prefix.size(), prefix) != 0 || entry.size() == prefix.size()) continue;
    ipc::SetVariable(environment, name, absl::StrCat(value, ":", entry.substr(prefix.size())));
    return;
  }
  ipc::SetVariable(environment, name, value);
}

// The driver that the program would load without us, by its path.
absl::StatusOr<std::string> VendorsDriver() {
  void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  link_map* map = nullptr;
  if (library == nullptr || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) {
    return absl::NotFoundError(absl::StrCat("cannot load libcuda.so.1 (", dlerror(),
                                            "); install the NVIDIA driver or use --device=soft"));
  }
  return std::string(map->l_name);
}

// In-process mode: our driver in front of the real one; on the software GPU its libraries, too.
void UseOwnContext(const std::string& driver, bool soft, std::vector<std::string>* environment) {
  const std::string root = ipc::LibraryRoot();
  Prepend(environment, "LD_LIBRARY_PATH",
          soft ? absl::StrCat(root, "/inprocess:", root, "/runtime:", root, "/softgpu")
               : absl::StrCat(root, "/inprocess"));
  ipc::SetVariable(environment, ipc::kDriverVariable, driver);
}

absl::Status ChooseLibraries(const ipc::Options& options, const Job& job,
                             std::vector<std::string>* environment) {
  Prepend(environment, "LD_PRELOAD", Preloaded(options));
  if (options.mode == "in-process") {
    const bool soft = job.device == "soft";
    if (soft && !job.devices.empty()) {
      return absl::InvalidArgumentError(
          "--gpus with --mode=in-process needs a GPU: a program has the whole software device to "
          "itself there; leave one of the two out");
    }
    // In its own context the driver is who keeps it to these.
    if (!job.devices.empty())
      ipc::SetVariable(environment, "CUDA_VISIBLE_DEVICES", absl::StrJoin(job.devices, ","));
    const absl::StatusOr<std::string> driver =
        soft ? ipc::LibraryPath("softgpu", "libcuda.so.1") : VendorsDriver();
    if (!driver.ok()) return driver.status();
    UseOwnContext(*driver, soft, environment);
    return absl::OkStatus();
  }
  Prepend(environment, "LD_LIBRARY_PATH",
          absl::StrCat(ipc::LibraryRoot(), "/shim:", ipc::LibraryRoot(), "/runtime"));
  return absl::OkStatus();
}

// Compilers that make machine code on a GPU. On the software GPU others precede them, also where a
// program finds its own by a run path.
void ChooseCompilers(const ipc::Options& options, const Job& job,
                     std::vector<std::string>* environment) {
  if (options.no_env || job.device != "soft") return;
  UseToolsOfSoftwareGpu(ipc::LibraryPath("softgpu", "bin"), environment);
  const std::string compilers = ipc::LibraryPath("softgpu", "compilers");
  Prepend(environment, "LD_LIBRARY_PATH", compilers);
  ipc::SetVariable(environment, ipc::kCompilersVariable, compilers);
}

// All that a program needs of ours.
std::vector<std::string> LibrariesOf(const ipc::Options& options) {
  std::vector<std::string> libraries = Facades();
  if (options.mode == "in-process") libraries = {ipc::LibraryPath("inprocess", "libcuda.so.1")};
  libraries.push_back(Preloaded(options));
  return libraries;
}

void Append(const std::vector<std::string>& variables, std::vector<std::string>* environment) {
  environment->insert(environment->end(), variables.begin(), variables.end());
}

std::vector<std::string> ClientEnvironment(const ipc::Options& options, const std::string& dir,
                                           const Job& job) {
  std::vector<std::string> environment = ipc::WithoutFacades(environ, ipc::LibraryRoot());
  ipc::SetVariable(&environment, ipc::kJobVariable, job.ticket);
  if (!options.no_env) Append(MemoryVariables(environment), &environment);
  if (!options.no_env && Replays(options)) Append(ReplayVariables(environment), &environment);
  if (options.no_sites) ipc::SetVariable(&environment, ipc::kSitesVariable, "off");
  if (options.no_lane) ipc::SetVariable(&environment, ipc::kLaneVariable, "off");
  ipc::SetVariable(&environment, ipc::kRuntimeDirVariable, dir);
  ipc::SetVariable(&environment, ipc::kTransportVariable, options.transport);
  ipc::SetVariable(&environment, ipc::kModeVariable, options.mode);
  ipc::SetVariable(&environment, ipc::kIterationsVariable, options.iterations_from);
  ipc::SetVariable(&environment, ipc::kReplayVariable, options.replay);
  if (options.iterations_from == "nvtx") {
    ipc::SetVariable(&environment, ipc::kNvtxVariable,
                     ipc::LibraryPath("shim", "liblaneway_nvtx.so"));
  }
  return environment;
}

// Signals that someone sends to `laneway run` are meant for the program.
sigset_t ForwardedSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number :
       {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH, SIGCHLD}) {
    sigaddset(&signals, number);
  }
  return signals;
}

// Waits for the child, forwarding signals. What the terminal sends reaches the whole foreground
// group by itself (it comes from the kernel) and is not sent twice.
int WaitFor(pid_t child, const sigset_t& signals) {
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child && WIFEXITED(status)) return WEXITSTATUS(status);
    if (ended == child && WIFSIGNALED(status)) return 128 + WTERMSIG(status);
    siginfo_t info;
    const int number = sigwaitinfo(&signals, &info);
    if (number > 0 && number != SIGCHLD && info.si_code != SI_KERNEL) kill(child, number);
  }
}

// In the child of a fork.
[[noreturn]] void BecomeProgram(const std::string& path, char* const* argv,
                                char* const* environment, const sigset_t& mask, int report_fd) {
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  execve(path.c_str(), argv, environment);
  // As a shell does for a script without its first line.
  if (errno == ENOEXEC) {
    std::vector<char*> words = {const_cast<char*>("/bin/sh"), const_cast<char*>(path.c_str())};
    for (char* const* word = argv + 1; *word != nullptr; ++word) words.push_back(*word);
    words.push_back(nullptr);
    execve("/bin/sh", words.data(), environment);
  }
  const int error = errno;
  (void)!write(report_fd, &error, sizeof error);
  _exit(kNotExecutable);
}

int Execute(const std::string& path, std::vector<std::string> command,
            std::vector<std::string> environment) {
  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC) != 0)
    return Fail(kLanewayFailed, "no descriptors left; raise ulimit -n");
  const ipc::UniqueFd read_end(pipe_fds[0]);
  ipc::UniqueFd write_end(pipe_fds[1]);
  const std::vector<char*> argv = ipc::PointersOf(&command);
  const std::vector<char*> envp = ipc::PointersOf(&environment);
  const sigset_t signals = ForwardedSignals();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &signals, &before);
  const pid_t child = fork();
  if (child < 0)
    return Fail(kLanewayFailed, absl::StrCat("fork: ", std::strerror(errno), "; raise ulimit -u"));
  if (child == 0) BecomeProgram(path, argv.data(), envp.data(), before, write_end.get());
  write_end.Reset();
  int error = 0;
  if (read(read_end.get(), &error, sizeof error) == sizeof error) {
    waitpid(child, nullptr, 0);
    return Fail(error == ENOENT ? kNotFound : kNotExecutable,
                absl::StrCat("cannot execute ", path, ": ", std::strerror(error),
                             "; is its interpreter installed?"));
  }
  return WaitFor(child, signals);
}

}  // namespace

std::vector<std::string> Facades() {
  return {ipc::LibraryPath("shim", "libcuda.so.1"), ipc::LibraryPath("shim", "libcublas.so.13"),
          ipc::LibraryPath("shim", "libcublasLt.so.13"),
          ipc::LibraryPath("runtime", "libcudart.so.13")};
}

int Run(const ipc::Options& options, const std::vector<std::string>& command,
        const std::string& recording) {
  const std::string dir = options.runtime_dir.empty() ? ipc::RuntimeDir() : options.runtime_dir;
  std::string path;
  if (const int code = FindProgram(command[0], &path); code != 0) return code;
  if (ipc::LibraryRoot().find_first_of(" :;") != std::string::npos) {
    return Fail(kLanewayFailed,
                absl::StrCat("the name of ", ipc::LibraryRoot(),
                             " has a space or colon, so that it can't be preloaded; move it"));
  }
  // ld.so would complain in every child, and the program would run without us.
  for (const std::string& facade : LibrariesOf(options)) {
    if (!Exists(facade)) {
      return Fail(kLanewayFailed,
                  absl::StrCat(facade, " is missing; install or build Laneway completely"));
    }
  }
  const absl::StatusOr<Job> job = NewJob(options, command);
  if (!job.ok()) return Fail(kLanewayFailed, std::string(job.status().message()));
  std::vector<std::string> environment = ClientEnvironment(options, dir, *job);
  if (!recording.empty()) ipc::SetVariable(&environment, ipc::kRecordVariable, recording);
  ChooseCompilers(options, *job, &environment);
  const absl::Status chosen = ChooseLibraries(options, *job, &environment);
  if (!chosen.ok()) return Fail(kLanewayFailed, std::string(chosen.message()));
  const int code = Execute(path, command, std::move(environment));
  TellExit(dir, job->number, code);
  return code;
}

}  // namespace cli
