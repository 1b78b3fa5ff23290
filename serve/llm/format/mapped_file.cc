#include "serve/llm/format/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace serve::llm {
namespace {

absl::StatusOr<std::span<const std::byte>> Map(int file, const std::string& path) {
  struct stat facts {};
  if (fstat(file, &facts) != 0)
    return absl::NotFoundError(absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
  if (const std::string why = WhyNotMapped(facts, geteuid()); !why.empty())
    return absl::InvalidArgumentError(absl::StrCat(path, " ", why));
  const size_t size = static_cast<size_t>(facts.st_size);
  void* const begin = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  if (begin == MAP_FAILED)
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot map ", path, ": ", std::strerror(errno)));
  return std::span<const std::byte>(static_cast<const std::byte*>(begin), size);
}

}  // namespace

std::string WhyNotMapped(const struct stat& file, uid_t user) {
  if (S_ISDIR(file.st_mode)) return "is a directory; name the file of the model";
  if (!S_ISREG(file.st_mode)) return "is no regular file; name the file of the model";
  if (file.st_uid != user && file.st_uid != 0)
    return "belongs to another user; make a copy of your own";
  if (file.st_size == 0) return "is empty; fetch it again";
  return "";
}

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  // Without O_NONBLOCK opening a FIFO would wait for its writer.
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0)
    return absl::NotFoundError(absl::StrCat("cannot open ", path, ": ", std::strerror(errno)));
  const absl::StatusOr<std::span<const std::byte>> bytes = Map(file, path);
  close(file);
  if (!bytes.ok()) return bytes.status();
  return MappedFile(*bytes);
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace serve::llm
