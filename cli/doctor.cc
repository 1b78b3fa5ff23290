#include "cli/doctor.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/daemon_link.h"
#include "cli/frameworks.h"
#include "cli/run.h"
#include "cli/show.h"
#include "cli/table.h"
#include "ipc/environment.h"
#include "ipc/install.h"
#include "ipc/runtime_dir.h"
#include "ipc/session_file.h"
#include "ipc/socket.h"

namespace cli {
namespace {

constexpr rlim_t kDescriptorsWanted = 4096;
constexpr unsigned kProbeTimeoutS = 20;
constexpr int64_t kStatusTimeoutUs = 5'000'000;

enum class Verdict { kGood, kNote, kProblem };

struct Finding {
  Verdict verdict = Verdict::kGood;
  std::string what;
  std::string remedy;
};

Finding Good(const std::string& what) { return {Verdict::kGood, what, ""}; }
Finding Note(const std::string& what, const std::string& remedy) {
  return {Verdict::kNote, what, remedy};
}
Finding Problem(const std::string& what, const std::string& remedy) {
  return {Verdict::kProblem, what, remedy};
}

// Runs `probe` in a child, because a library that is loaded may do anything. Returns what it
// printed into its result, or an empty text when it crashed or took too long.
std::string InChild(const std::function<std::string()>& probe) {
  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC) != 0) return {};
  const ipc::UniqueFd read_end(pipe_fds[0]);
  ipc::UniqueFd write_end(pipe_fds[1]);
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(kProbeTimeoutS);
    const std::string text = probe();
    (void)!write(write_end.get(), text.data(), text.size());
    _exit(0);
  }
  write_end.Reset();
  std::string text;
  char part[512];
  for (ssize_t got = 0; (got = read(read_end.get(), part, sizeof part)) > 0;) {
    text.append(part, static_cast<size_t>(got));
  }
  waitpid(pid, nullptr, 0);
  return text;
}

Finding CheckLibrary(const std::string& path) {
  const std::string text = InChild([&path]() -> std::string {
    if (dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return "ok";
    return dlerror();
  });
  if (text == "ok") return Good(absl::StrCat(path, " loads"));
  return Problem(absl::StrCat(path, " does not load: ", text.empty() ? "it crashes" : text),
                 "install or build Laneway completely (scripts/build)");
}

void CheckLibraries(std::vector<Finding>* findings) {
  std::vector<std::string> paths = Facades();
  paths.push_back(ipc::LibraryPath("shim", "liblaneway_client.so"));
  paths.push_back(ipc::LibraryPath("inprocess", "libcuda.so.1"));
  paths.push_back(ipc::LibraryPath("inprocess", "liblaneway_preload.so"));
  paths.push_back(ipc::LibraryPath("softgpu", "libcuda.so.1"));
  paths.push_back(ipc::LibraryPath("softgpu", "libcublas.so.13"));
  paths.push_back(ipc::LibraryPath("softgpu", "libcublasLt.so.13"));
  for (const std::string& path : paths) findings->push_back(CheckLibrary(path));
  for (const char* const name : {"lanewayd", "laneway-keeper", "laneway-worker"}) {
    const std::string path = ipc::BinaryPath(name);
    if (access(path.c_str(), X_OK) != 0) {
      findings->push_back(Problem(absl::StrCat(path, ": ", std::strerror(errno)),
                                  "install or build Laneway completely (scripts/build)"));
    }
  }
}

// "devices N, CUDA M.m" of the vendor's driver, or why there is none.
std::string ProbeDriver() {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return "missing";
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto count_of = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
  const auto version_of = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDriverGetVersion"));
  int count = 0, version = 0;
  if (init == nullptr || count_of == nullptr || version_of == nullptr) return "no driver interface";
  if (const int result = init(0); result != 0) return absl::StrCat("cuInit returns ", result);
  if (count_of(&count) != 0 || version_of(&version) != 0) return "its devices can't be counted";
  return nlohmann::json{{"count", count}, {"version", version}}.dump();
}

void CheckDevices(std::vector<Finding>* findings) {
  DIR* const devices = opendir("/dev");
  bool any = false;
  while (const dirent* entry = devices == nullptr ? nullptr : readdir(devices)) {
    if (!absl::StartsWith(entry->d_name, "nvidia")) continue;
    const std::string path = absl::StrCat("/dev/", entry->d_name);
    any = true;
    if (access(path.c_str(), R_OK | W_OK) != 0) {
      findings->push_back(Problem(absl::StrCat("no permission for ", path),
                                  "ask to be let in to its group (ls -l /dev/nvidia*)"));
    }
  }
  if (devices != nullptr) closedir(devices);
  const std::string text = InChild(ProbeDriver);
  const nlohmann::json driver = nlohmann::json::parse(text, nullptr, false);
  if (text == "missing" && !any) {
    findings->push_back(Note("no NVIDIA driver here: --device=auto takes the software GPU",
                             "for a GPU install NVIDIA's driver for CUDA 13 (580 or later)"));
  } else if (!driver.is_object()) {
    findings->push_back(Problem(absl::StrCat("the NVIDIA driver does not work: ", text),
                                "see nvidia-smi; use --device=soft until then"));
  } else if (driver["version"].get<int>() < 13000) {
    findings->push_back(
        Problem(absl::StrCat("the NVIDIA driver is for CUDA ", driver["version"].get<int>() / 1000),
                "install a driver for CUDA 13 (580 or later), or use --device=soft"));
  } else {
    findings->push_back(
        Good(absl::StrCat("NVIDIA driver with ", driver["count"].get<int>(), " GPU(s)")));
  }
}

void CheckToolkit(std::vector<Finding>* findings) {
  for (const char* const path :
       {"/usr/local/cuda/bin/nvcc", "/usr/bin/nvcc", "/opt/cuda/bin/nvcc"}) {
    if (access(path, X_OK) != 0) continue;
    findings->push_back(Good(absl::StrCat("CUDA compiler at ", path)));
    return;
  }
  findings->push_back(Note("no CUDA compiler found: needed only to build CUDA programs",
                           "install the CUDA 13 toolkit, or run scripts/setup"));
}

void CheckRuntimeDirectory(const std::string& dir, std::vector<Finding>* findings) {
  const absl::Status usable = ipc::CheckRuntimeDir(dir);
  if (absl::IsNotFound(usable)) {
    findings->push_back(
        Good(absl::StrCat("runtime directory ", dir, " (made when a daemon starts)")));
  } else if (!usable.ok()) {
    findings->push_back(Problem(std::string(usable.message()), "see above"));
    return;
  } else {
    findings->push_back(Good(absl::StrCat("runtime directory ", dir)));
  }
  const absl::StatusOr<int> file = ipc::SessionFile::Create(1, 0);
  if (file.ok()) {
    close(*file);
    findings->push_back(Good(absl::StrCat(
        "room for a session's rings (", BytesText(ipc::kSessionMemoryBytes), " of memory each)")));
  } else {
    findings->push_back(Problem(std::string(file.status().message()), "see above"));
  }
  struct statvfs shm;
  if (statvfs("/dev/shm", &shm) == 0 && shm.f_bavail * shm.f_frsize < (64u << 20)) {
    findings->push_back(
        Note(absl::StrCat("/dev/shm has only ", BytesText(shm.f_bavail * shm.f_frsize), " left"),
             "remove what is not needed there"));
  }
}

void CheckLimits(std::vector<Finding>* findings) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max < kDescriptorsWanted) {
    findings->push_back(Problem(absl::StrCat("only ", limit.rlim_max, " open files are allowed"),
                                absl::StrCat("raise the hard limit to ", kDescriptorsWanted,
                                             " or more (ulimit -Hn, limits.conf)")));
  } else {
    findings->push_back(Good(absl::StrCat("open files: up to ", limit.rlim_max)));
  }
  getrlimit(RLIMIT_AS, &limit);
  if (limit.rlim_cur != RLIM_INFINITY) {
    findings->push_back(
        Problem("address space is limited (ulimit -v): sessions reserve 256 GiB of addresses",
                "ulimit -v unlimited"));
  }
  std::ifstream overcommit("/proc/sys/vm/overcommit_memory");
  int mode = 0;
  if (overcommit >> mode && mode == 2) {
    findings->push_back(Problem("the kernel allows no overcommit (vm.overcommit_memory=2)",
                                "sysctl vm.overcommit_memory=0"));
  }
  if (!ipc::OpenPidfd(getpid()).ok()) {
    findings->push_back(Problem("the kernel has no pidfd", "use Linux 5.4 or later"));
  }
}

void CheckConfig(std::vector<Finding>* findings) {
  ipc::Options options;
  const absl::Status config = ipc::ReadConfig(&options);
  findings->push_back(config.ok() ? Good(absl::StrCat("configuration ", ipc::ConfigPath()))
                                  : Problem(std::string(config.message()), "see above"));
}

// A framework's memory may behave otherwise with them, so they are to be seen somewhere.
void NameVariables(const ipc::Options& options, std::vector<Finding>* findings) {
  if (options.no_env) {
    findings->push_back(Good("laneway run sets no variables of frameworks (no-env)"));
    return;
  }
  const std::vector<std::string> environment = ipc::WithoutFacades(environ, ipc::LibraryRoot());
  const auto name = [findings](const char* when, const std::vector<std::string>& variables) {
    if (variables.empty()) return;
    findings->push_back(
        Good(absl::StrCat(when, absl::StrJoin(variables, " "), " (--no-env: nothing)")));
  };
  name("laneway run sets for frameworks' memory: ", MemoryVariables(environment));
  name(Replays(options) ? "laneway run sets for replay: " : "laneway run --replay also sets ",
       ReplayVariables(environment));
}

void CheckDaemon(const std::string& dir, std::vector<Finding>* findings) {
  const absl::StatusOr<std::string> reply = Ask(dir, R"({"command":"status"})", kStatusTimeoutUs);
  if (absl::IsNotFound(reply.status())) {
    findings->push_back(Good("no daemon runs; laneway run starts one"));
    return;
  }
  if (!reply.ok()) {
    findings->push_back(Problem(std::string(reply.status().message()), "laneway stop --force"));
    return;
  }
  const std::string version = nlohmann::json::parse(*reply).value("version", "?");
  if (version == LANEWAY_VERSION) {
    findings->push_back(Good(absl::StrCat("a daemon of version ", version, " serves")));
  } else {
    findings->push_back(
        Problem(absl::StrCat("the daemon is version ", version, ", this command ", LANEWAY_VERSION),
                "laneway stop; the next laneway run starts the new one"));
  }
}

}  // namespace

int Doctor(const ipc::Options& options) {
  const std::string dir = options.runtime_dir.empty() ? ipc::RuntimeDir() : options.runtime_dir;
  std::vector<Finding> findings = {
      Good(absl::StrCat("Laneway ", LANEWAY_VERSION, " in ", ipc::InstallPrefix()))};
  CheckConfig(&findings);
  CheckLibraries(&findings);
  CheckDevices(&findings);
  CheckToolkit(&findings);
  CheckRuntimeDirectory(dir, &findings);
  CheckLimits(&findings);
  NameVariables(options, &findings);
  CheckDaemon(dir, &findings);
  bool problem = false;
  for (const Finding& finding : findings) {
    const char* const mark = finding.verdict == Verdict::kGood   ? "ok      "
                             : finding.verdict == Verdict::kNote ? "note    "
                                                                 : "PROBLEM ";
    std::printf("%s%s\n", mark, finding.what.c_str());
    if (!finding.remedy.empty()) std::printf("        -> %s\n", finding.remedy.c_str());
    problem = problem || finding.verdict == Verdict::kProblem;
  }
  return problem ? 1 : 0;
}

}  // namespace cli
