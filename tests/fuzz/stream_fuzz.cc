// Recorded op streams from anywhere, and what the detector makes of them.
#include <cstddef>
#include <cstdint>
#include <span>

#include "shim/iterations/detector.h"
#include "shim/iterations/stream.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::optional<std::vector<shim::iterations::RecordedOp>> ops =
      shim::iterations::DecodeStreamUntrusted(std::as_bytes(std::span<const uint8_t>(data, size)));
  if (!ops.has_value()) return 0;
  shim::iterations::Detector detector;
  for (const shim::iterations::RecordedOp& recorded : *ops) detector.Next(recorded.op);
  return 0;
}
