#include "replay/op_stream.h"

#include <cassert>

#include "ipc/calls/limits.h"

namespace replay {

bool OpStream::Add(const OpView& op) {
  if (ops_.size() >= ipc::limits::kRecordedOpsMax ||
      op.arguments.size() > ipc::limits::kRecordedBytesMax - arguments_.size()) {
    return false;
  }
  ops_.push_back({op.key, static_cast<uint32_t>(arguments_.size())});
  arguments_.insert(arguments_.end(), op.arguments.begin(), op.arguments.end());
  return true;
}

OpStream OpStream::Slice(size_t begin, size_t end) const {
  assert(begin <= end && end <= size());
  OpStream slice;
  for (size_t i = begin; i < end; ++i) slice.Add(at(i));
  return slice;
}

void OpStream::Clear() {
  ops_.clear();
  arguments_.clear();
}

}  // namespace replay
