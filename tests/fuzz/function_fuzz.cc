// Function files from anywhere, with a checksum that is right: what stops damage must not hide the
// decoder. What is accepted is written again as it was, but for the tables of calls: a file of an
// earlier build is accepted where those begin alike, and is written with the tables of this build.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "functions/function_file.h"

namespace {

constexpr size_t kSumAt = 16;  // after magic and version

functions::Bytes WithChecksum(std::span<const std::byte> file) {
  functions::Bytes fixed(file.begin(), file.end());
  const size_t from = kSumAt + sizeof(uint64_t);
  if (fixed.size() < from) return fixed;
  const uint64_t sum = XXH3_64bits(fixed.data() + from, fixed.size() - from);
  std::memcpy(fixed.data() + kSumAt, &sum, sizeof sum);
  return fixed;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const functions::Bytes file = WithChecksum(std::as_bytes(std::span<const uint8_t>(data, size)));
  functions::Function function;
  std::string why;
  if (!functions::DecodeFunctionUntrusted(file, &function, &why)) {
    if (why.empty()) std::abort();
    return 0;
  }
  const functions::Bytes again = functions::EncodeFunction(function);
  functions::Function same;
  if (!functions::DecodeFunctionUntrusted(again, &same, &why)) std::abort();
  if (functions::EncodeFunction(same) != again) std::abort();
  if (again.size() != file.size()) std::abort();
  return 0;
}
