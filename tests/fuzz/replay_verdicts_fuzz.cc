// Files of replay verdicts from anywhere, with a checksum that is right: what finds damage must not
// hide the decoder. What is accepted is written again as it was.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "daemon/control/replay_verdicts.h"

namespace {

constexpr size_t kSumAt = 16;  // after magic and version

std::string WithChecksum(std::string file) {
  const size_t from = kSumAt + sizeof(uint64_t);
  if (file.size() < from) return file;
  const uint64_t sum = XXH3_64bits(file.data() + from, file.size() - from);
  std::memcpy(file.data() + kSumAt, &sum, sizeof sum);
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string file = WithChecksum(std::string(reinterpret_cast<const char*>(data), size));
  absl::StatusOr<control::ReplayVerdicts> read = control::ReplayVerdicts::DecodeUntrusted(file);
  if (!read.ok()) {
    if (read.status().message().empty()) std::abort();
    return 0;
  }
  if (read->Encode() != file) std::abort();
  for (const ipc::ReplayVerdict& verdict : read->InForce()) {
    if (!ipc::IsSound(verdict)) std::abort();
    read->Taken(verdict, INT64_MAX);
    read->Measured(verdict, INT64_MIN);
  }
  if (!control::ReplayVerdicts::DecodeUntrusted(read->Encode()).ok()) std::abort();
  return 0;
}
