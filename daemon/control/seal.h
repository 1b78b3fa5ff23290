// A keyed hash (BLAKE2b, libsodium) that only the daemons of one runtime directory can make. A
// daemon seals a ticket for a program, and later daemons recognise the ticket by its seal.
//
// The key is a file of the runtime directory, mode 0600, made by the first daemon and read by those
// after it. A keeper or worker could hold the key too, but all of these may die while programs run
// on; and the directory is where "the same daemon" is defined. The key protects against processes
// that can reach a socket and no file. A process that reads the user's files runs as the user, and
// may command the daemon as well. Thread safety: const after Load().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "ipc/job.h"

namespace control {

class Seal {
 public:
  // Reads the key of the directory, or makes one. FailedPrecondition, with a sentence, when the
  // file is not ours alone or can't be made. REQUIRES: the caller holds the directory's lock.
  static absl::StatusOr<Seal> Load(const std::string& runtime_dir);

  // `purpose` keeps a seal made for one purpose from being accepted for another.
  ipc::Mac Of(std::string_view purpose, std::span<const std::byte> bytes) const;
  // In a time that does not tell how much of it is right.
  bool Is(const ipc::Mac& mac, std::string_view purpose, std::span<const std::byte> bytes) const;

 private:
  std::array<uint8_t, 32> key_ = {};
};

// Random, and never 0.
uint64_t RandomId();

}  // namespace control
