#include "ipc/state_dir.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "ipc/unique_fd.h"

namespace ipc {
namespace {

absl::Status Failed(const std::string& path) {
  const int error = errno;
  const std::string sentence = absl::StrCat("cannot write ", path, ": ", std::strerror(error));
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    return absl::ResourceExhaustedError(absl::StrCat(sentence, "; make room there"));
  }
  return absl::FailedPreconditionError(sentence);
}

// Every directory above `path` that is missing.
absl::Status MakeParents(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string dir = path.substr(0, slash);
    if (mkdir(dir.c_str(), 0700) != 0 && errno != EEXIST) return Failed(dir);
  }
  return absl::OkStatus();
}

bool WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

// A file to be read; its size and owner come to *info. `flags`: more of open()'s.
absl::StatusOr<UniqueFd> OpenFile(const std::string& path, int flags, struct stat* info) {
  UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags));
  if (!file.valid() && errno == ENOENT) return absl::NotFoundError(absl::StrCat("no ", path));
  if (!file.valid() || fstat(file.get(), info) != 0)
    return absl::FailedPreconditionError(
        absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
  if (!S_ISREG(info->st_mode))
    return absl::FailedPreconditionError(absl::StrCat(path, " is not a file; remove it"));
  return file;
}

absl::Status CheckOwner(const struct stat& info, const std::string& path) {
  if (info.st_uid != geteuid())
    return absl::PermissionDeniedError(absl::StrCat(path, " belongs to another user"));
  if ((info.st_mode & 022) != 0)
    return absl::PermissionDeniedError(
        absl::StrCat("others may write ", path, "; chmod go-w it, if you trust it"));
  return absl::OkStatus();
}

bool ReadAll(int fd, std::string* text) {
  size_t length = 0;
  while (length < text->size()) {
    const ssize_t got = read(fd, text->data() + length, text->size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    length += static_cast<size_t>(got);
  }
  return true;
}

}  // namespace

std::string StateDir() {
  const char* const state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state == '/') return absl::StrCat(state, "/laneway");
  const char* const home = std::getenv("HOME");
  if (home == nullptr || *home != '/') return {};
  return absl::StrCat(home, "/.local/state/laneway");
}

absl::Status WriteWhole(const std::string& path, std::string_view text) {
  if (const absl::Status made = MakeParents(path); !made.ok()) return made;
  const std::string fresh = absl::StrCat(path, ".", getpid(), ".new");
  UniqueFd file(open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) return Failed(fresh);
  const bool written = WriteAll(file.get(), text) && close(file.Release()) == 0;
  if (written && rename(fresh.c_str(), path.c_str()) == 0) return absl::OkStatus();
  const absl::Status failed = Failed(path);
  unlink(fresh.c_str());
  return failed;
}

absl::Status AppendLine(const std::string& path, std::string_view line, size_t bytes_max) {
  if (const absl::Status made = MakeParents(path); !made.ok()) return made;
  struct stat info;
  if (stat(path.c_str(), &info) == 0 &&
      static_cast<size_t>(info.st_size) + line.size() > bytes_max) {
    (void)rename(path.c_str(), absl::StrCat(path, ".1").c_str());
  }
  const UniqueFd file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) return Failed(path);
  const ssize_t written = write(file.get(), line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) return absl::OkStatus();
  // A part of a line: the disk is full. It ends here, so that the next line is whole.
  if (written >= 0) errno = ENOSPC;
  const absl::Status failed = Failed(path);
  if (written > 0 && fstat(file.get(), &info) == 0) {
    (void)!ftruncate(file.get(), info.st_size - written);
  }
  return failed;
}

absl::StatusOr<std::string> ReadBounded(const std::string& path, size_t bytes_max) {
  struct stat info;
  const absl::StatusOr<UniqueFd> file = OpenFile(path, 0, &info);
  if (!file.ok()) return file.status();
  // Reads the present size and one byte more: a short read then shows the end. The file may grow
  // meanwhile. The buffer is not made for bytes_max, which is far more than most files have.
  std::string text;
  size_t length = 0;
  for (ssize_t got = 1; got > 0 && length <= bytes_max; length += static_cast<size_t>(got)) {
    if (length == text.size()) {
      const size_t held = std::max(length, static_cast<size_t>(info.st_size));
      text.resize(std::min(bytes_max, held + held / 2) + 1);
    }
    got = read(file->get(), text.data() + length, text.size() - length);
    if (got < 0 && errno == EINTR) got = 0;
    if (got <= 0) break;
  }
  if (length > bytes_max) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, " is longer than ", bytes_max, " bytes; remove it"));
  }
  text.resize(length);
  return text;
}

absl::StatusOr<std::string> ReadOwn(const std::string& path, uint64_t bytes_max) {
  struct stat info;
  const absl::StatusOr<UniqueFd> file = OpenFile(path, O_NOFOLLOW, &info);
  if (!file.ok()) return file.status();
  if (const absl::Status own = CheckOwner(info, path); !own.ok()) return own;
  if (static_cast<uint64_t>(info.st_size) > bytes_max)
    return absl::ResourceExhaustedError(absl::StrCat(path, " is too long; remove it"));
  std::string text(static_cast<size_t>(info.st_size), '\0');
  if (!ReadAll(file->get(), &text))
    return absl::FailedPreconditionError(absl::StrCat("cannot read ", path, "; try again"));
  return text;
}

}  // namespace ipc
