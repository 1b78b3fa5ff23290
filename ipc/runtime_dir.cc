#include "ipc/runtime_dir.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ipc/calls/limits.h"
#include "ipc/hello.h"

namespace ipc {
namespace {

constexpr size_t kLongestNameBytes = sizeof("/session-18446744073709551615.zmq");

absl::Status MakeDir(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("cannot create the runtime directory ", path, ": ", std::strerror(errno),
                   "; set LANEWAY_RUNTIME_DIR to a directory that you can write"));
}

// Parents of a directory that the user named; each is left as it is when it exists.
absl::Status MakeParents(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const absl::Status made = MakeDir(path.substr(0, slash));
    if (!made.ok()) return made;
  }
  return absl::OkStatus();
}

}  // namespace

std::string RuntimeDir() {
  const char* const own = std::getenv(kRuntimeDirVariable);
  if (own != nullptr && *own != '\0') return own;
  const char* const xdg = std::getenv("XDG_RUNTIME_DIR");
  if (xdg != nullptr && *xdg != '\0') return absl::StrCat(xdg, "/laneway");
  return absl::StrCat("/dev/shm/laneway-", getuid());
}

absl::Status CheckRuntimeDir(const std::string& dir) {
  if (dir.empty() || dir[0] != '/' || dir.size() + kLongestNameBytes > limits::kPathBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the runtime directory '", dir, "' must be an absolute path of at most ",
        limits::kPathBytesMax - kLongestNameBytes, " characters; set LANEWAY_RUNTIME_DIR"));
  }
  struct stat info;
  if (lstat(dir.c_str(), &info) != 0) {
    if (errno == ENOENT) return absl::NotFoundError(absl::StrCat("there is no ", dir));
    return absl::FailedPreconditionError(
        absl::StrCat("cannot enter the runtime directory ", dir, ": ", std::strerror(errno),
                     "; set LANEWAY_RUNTIME_DIR to one of your own"));
  }
  if (!S_ISDIR(info.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the runtime directory ", dir,
                     " is not a directory; remove it or set LANEWAY_RUNTIME_DIR"));
  }
  if (info.st_uid != geteuid()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the runtime directory ", dir, " belongs to uid ", info.st_uid,
                     ", not to you (", geteuid(), "); set LANEWAY_RUNTIME_DIR to one of your own"));
  }
  if ((info.st_mode & 077) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("others can enter the runtime directory ", dir, "; run chmod 700 ", dir));
  }
  return absl::OkStatus();
}

absl::Status MakeRuntimeDir(const std::string& dir) {
  if (const absl::Status now = CheckRuntimeDir(dir); !absl::IsNotFound(now)) {
    return now.ok() ? MakeDir(absl::StrCat(dir, "/log")) : now;
  }
  if (const absl::Status made = MakeParents(dir); !made.ok()) return made;
  if (const absl::Status made = MakeDir(dir); !made.ok()) return made;
  if (const absl::Status now = CheckRuntimeDir(dir); !now.ok()) return now;
  return MakeDir(absl::StrCat(dir, "/log"));
}

std::string HelloSocketPath(const std::string& dir) {
  return absl::StrCat(dir, "/", kHelloSocketName);
}

std::string KeeperSocketPath(const std::string& dir) {
  return absl::StrCat(dir, "/", kKeeperSocketName);
}

std::string WorkerSocketPath(const std::string& dir, uint32_t worker) {
  return absl::StrCat(dir, "/worker-", worker, ".sock");
}

std::string SessionEndpoint(const std::string& dir, uint64_t session_id) {
  return absl::StrCat("ipc://", dir, "/session-", session_id, ".zmq");
}

std::string ControlEndpoint(const std::string& dir) {
  return absl::StrCat("ipc://", dir, "/", kControlEndpointName);
}

void UnlinkEndpoint(const std::string& endpoint) {
  absl::string_view path = endpoint;
  if (absl::ConsumePrefix(&path, "ipc://")) unlink(std::string(path).c_str());
}

void MakeEndpointPrivate(const std::string& endpoint) {
  absl::string_view path = endpoint;
  if (absl::ConsumePrefix(&path, "ipc://")) chmod(std::string(path).c_str(), 0600);
}

std::string LockPath(const std::string& dir) { return absl::StrCat(dir, "/", kLockName); }

std::string SecretPath(const std::string& dir) { return absl::StrCat(dir, "/", kSecretName); }

std::string LogPath(const std::string& dir, const std::string& process) {
  return absl::StrCat(dir, "/log/", process, ".log");
}

std::vector<uint32_t> WorkerSocketsIn(const std::string& dir) {
  std::vector<uint32_t> workers;
  DIR* const listing = opendir(dir.c_str());
  if (listing == nullptr) return workers;
  while (const dirent* entry = readdir(listing)) {
    absl::string_view name = entry->d_name;
    uint32_t number = 0;
    if (absl::ConsumePrefix(&name, "worker-") && absl::ConsumeSuffix(&name, ".sock") &&
        absl::SimpleAtoi(name, &number)) {
      workers.push_back(number);
    }
  }
  closedir(listing);
  std::sort(workers.begin(), workers.end());
  return workers;
}

}  // namespace ipc
