// A file of a model in memory, mapped for reading, not copied: weights are gigabytes.
//
// Regular files of the user and of root are read. Files of other users are refused: reading a
// mapped file beyond a new, shorter end raises SIGBUS, so another user could end the process.
//
// Thread safety: bytes() from any thread. Ownership: the mapping ends with the object.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace serve::llm {

// The end of a sentence that says why a file is not read for this user; empty: it is.
std::string WhyNotMapped(const struct stat& file, uid_t user);

class MappedFile {
 public:
  // A failure is a sentence with the path in it.
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

}  // namespace serve::llm
