// Files that outlive daemons: $XDG_STATE_HOME/laneway, else ~/.local/state/laneway, mode 0700.
//
// They hold what is nice to know (history, learned durations), so nothing waits for the disk: no
// fsync, and whoever reads takes a torn or foreign file for an empty one. A write that fails (a
// full disk) changes nothing and says so. Thread safety: reads the environment; files may be
// written by several daemons at once, the last whole one wins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ipc {

// Empty when neither variable is set.
std::string StateDir();

// Replaces the file as a whole: readers see the old one or the new one. Makes its directory.
absl::Status WriteWhole(const std::string& path, std::string_view text);

// Adds `line`, which ends with a newline, by one write: lines of several writers never mix. A file
// that would grow over `bytes_max` becomes PATH.1 first, replacing an older one.
absl::Status AppendLine(const std::string& path, std::string_view line, size_t bytes_max);

// NotFound: no such file. ResourceExhausted: longer than `bytes_max`. Only regular files are read.
absl::StatusOr<std::string> ReadBounded(const std::string& path, size_t bytes_max);

// As ReadBounded, for what this user alone may have written. PermissionDenied: the file belongs to
// another user, or others may write it. Symbolic links are not followed.
absl::StatusOr<std::string> ReadOwn(const std::string& path, uint64_t bytes_max);

}  // namespace ipc
