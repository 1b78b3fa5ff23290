// Control messages: packets from a peer that may be of another build, or no Laneway at all.
#include <cstdint>
#include <span>

#include "ipc/control.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  ipc::control::DecodeControlUntrusted(bytes);
  return 0;
}
