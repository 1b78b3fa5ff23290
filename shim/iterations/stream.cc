#include "shim/iterations/stream.h"

#include <cstring>

namespace shim::iterations {
namespace {

constexpr uint32_t kComputes = 1, kSynced = 2, kMarked = 4;

}  // namespace

StreamRecord RecordOf(const Op& op, bool marked) {
  StreamRecord record;
  record.identity = op.identity;
  record.shape = op.shape;
  record.flags = (op.computes ? kComputes : 0) | (op.synced ? kSynced : 0) | (marked ? kMarked : 0);
  record.live_bytes = op.live_bytes;
  return record;
}

std::optional<std::vector<RecordedOp>> DecodeStreamUntrusted(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof kStreamMagic ||
      std::memcmp(bytes.data(), kStreamMagic, sizeof kStreamMagic) != 0) {
    return std::nullopt;
  }
  bytes = bytes.subspan(sizeof kStreamMagic);
  std::vector<RecordedOp> ops(bytes.size() / sizeof(StreamRecord));
  for (size_t i = 0; i < ops.size(); ++i) {
    StreamRecord record;
    std::memcpy(&record, bytes.data() + i * sizeof record, sizeof record);
    if ((record.flags & ~(kComputes | kSynced | kMarked)) != 0 || record.reserved != 0)
      return std::nullopt;
    Op& op = ops[i].op;
    op.identity = record.identity;
    op.shape = record.shape;
    op.computes = (record.flags & kComputes) != 0;
    op.synced = (record.flags & kSynced) != 0;
    op.live_bytes = record.live_bytes;
    ops[i].marked = (record.flags & kMarked) != 0;
  }
  return ops;
}

}  // namespace shim::iterations
