#include "daemon/control/seal.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "ipc/runtime_dir.h"
#include "ipc/state_dir.h"
#include "ipc/unique_fd.h"

namespace control {
namespace {

static_assert(sizeof(ipc::Mac) == crypto_generichash_BYTES);

void StartSodium() {
  const int started = sodium_init();  // fails only without a source of random numbers
  assert(started >= 0);
  (void)started;
}

absl::Status NotOurs(const std::string& path, const std::string& what) {
  return absl::FailedPreconditionError(absl::StrCat(path, " ", what, "; remove it"));
}

}  // namespace

absl::StatusOr<Seal> Seal::Load(const std::string& runtime_dir) {
  StartSodium();
  const std::string path = ipc::SecretPath(runtime_dir);
  Seal seal;
  const ipc::UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.valid() && errno == ENOENT) {
    randombytes_buf(seal.key_.data(), seal.key_.size());
    const absl::Status written =
        ipc::WriteWhole(path, {reinterpret_cast<const char*>(seal.key_.data()), seal.key_.size()});
    if (!written.ok()) return absl::FailedPreconditionError(written.message());
    return seal;
  }
  struct stat info;
  if (!file.valid() || fstat(file.get(), &info) != 0)
    return NotOurs(path, absl::StrCat("can't be read (", std::strerror(errno), ")"));
  if (!S_ISREG(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 077) != 0)
    return NotOurs(path, "is not this user's alone");
  const ssize_t got = read(file.get(), seal.key_.data(), seal.key_.size());
  if (info.st_size != static_cast<off_t>(seal.key_.size()) ||
      got != static_cast<ssize_t>(seal.key_.size())) {
    return NotOurs(path, "is no key of Laneway");
  }
  return seal;
}

ipc::Mac Seal::Of(std::string_view purpose, std::span<const std::byte> bytes) const {
  crypto_generichash_state state;
  crypto_generichash_init(&state, key_.data(), key_.size(), sizeof(ipc::Mac));
  const uint64_t length = purpose.size();  // where the purpose ends is a part of what is sealed
  crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(&length), sizeof length);
  crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(purpose.data()),
                            purpose.size());
  crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(bytes.data()),
                            bytes.size());
  ipc::Mac mac;
  crypto_generichash_final(&state, mac.data(), mac.size());
  return mac;
}

bool Seal::Is(const ipc::Mac& mac, std::string_view purpose,
              std::span<const std::byte> bytes) const {
  const ipc::Mac right = Of(purpose, bytes);
  return sodium_memcmp(mac.data(), right.data(), right.size()) == 0;
}

uint64_t RandomId() {
  StartSodium();
  uint64_t id = 0;
  while (id == 0) randombytes_buf(&id, sizeof id);
  return id;
}

}  // namespace control
