// Encoded op streams from anywhere. What is accepted is canonical: encoding it again gives the same
// bytes, and in another slot, too, where it can be told from addresses there.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "ipc/calls/limits.h"
#include "replay/op_stream_codec.h"

namespace {

void Check(std::span<const std::byte> bytes, const replay::Slot& slot) {
  replay::Callees callees;
  const std::optional<replay::OpStream> ops = replay::DecodeOpsUntrusted(bytes, slot, &callees);
  if (!ops.has_value()) return;
  const std::vector<std::byte> again = replay::EncodeOps(*ops, callees, slot);
  if (!std::equal(again.begin(), again.end(), bytes.begin(), bytes.end())) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span<const uint8_t>(data, size));
  Check(bytes, replay::Slot(ipc::limits::kSlotBase));
  Check(bytes, replay::Slot(ipc::limits::kSlotBase + ipc::limits::kSlotBytes));
  return 0;
}
