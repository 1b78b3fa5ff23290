#include "daemon/common/crash_note.h"

#include <fcntl.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "ipc/unique_fd.h"

namespace common {

std::string CrashNotePath(const std::string& runtime_dir, uint32_t number) {
  return absl::StrCat(runtime_dir, "/worker-", number, ".crash");
}

void LeaveCrashNote(const char* path, const CrashNote& note) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return;
  if (write(fd, &note, sizeof note) != sizeof note) unlink(path);
  close(fd);
}

std::optional<CrashNote> TakeCrashNote(const std::string& path) {
  const ipc::UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return std::nullopt;
  CrashNote note;
  const bool whole = read(fd.get(), &note, sizeof note) == sizeof note;
  unlink(path.c_str());
  return whole ? std::optional<CrashNote>(note) : std::nullopt;
}

}  // namespace common
