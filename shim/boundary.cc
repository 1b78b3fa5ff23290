// What goes before the first operation of an iteration.
#include <algorithm>
#include <utility>

#include "ipc/codec_client.h"
#include "shim/caller.h"
#include "shim/client.h"
#include "shim/device_memory.h"
#include "shim/iterations/iterations.h"
#include "shim/iterations/tokens.h"

namespace shim {

void Message::SendBoundaryBefore(ipc::Values values) {
  const std::optional<iterations::Op> token = iterations::TokenOf(op_, values);
  if (!token.has_value()) return;
  ipc::BoundaryInfo info;
  if (iterations::Iterations::Process().Before(*token, &info)) {
    const DeviceMemory::AtBoundary at = DeviceMemory::Process().OnBoundary();
    info.persistent_bytes = at.persistent_bytes;
    info.ephemeral_bytes = std::max(info.ephemeral_bytes, at.ephemeral_bytes);
    // Nobody waits for the answer: without other memory for the lane, the session keeps the lane.
    for (const arena::Range& range : at.outlived) {
      const ipc::Arguments<ipc::Op::LaneKeep> keep(CUdeviceptr{range.base}, size_t{range.bytes});
      SendFirst(ipc::Op::LaneKeep, keep.values(), State::WireOfDevice(at.lane_device),
                ipc::kWantsReply);
    }
    for (const arena::Range& range : at.unneeded) {
      const ipc::Arguments<ipc::Op::ArenaUnmap> unmap(CUdeviceptr{range.base});
      SendFirst(ipc::Op::ArenaUnmap, unmap.values(), State::WireOfDevice(at.lane_device), 0);
    }
    DeviceMemory::Process().Unmapped(at.unneeded);
    const ipc::Arguments<ipc::Op::Boundary> arguments(&info);
    SendFirst(ipc::Op::Boundary, arguments.values(), context_, 0);
  }
  client_.operations_.fetch_add(1, std::memory_order_relaxed);
}

// Another call, before this one.
void Message::SendFirst(ipc::Op op, ipc::Values values, uint32_t context, uint16_t flags) {
  const ipc::Op my_op = std::exchange(op_, op);
  const uint32_t my_context = std::exchange(context_, context);
  if (Reserve(ipc::RequestBytesMax(op_, values))) {
    ipc::Writer writer(body_);
    ipc::EncodeRequest(op_, values, ClientCaller::Process(), &writer);
    if (flags != 0 && ++client_.last_request_ == 0) ++client_.last_request_;
    values_ = values;
    Commit(writer.size(), flags, flags != 0 ? client_.last_request_ : 0);
    values_ = nullptr;
    token_ = RebuildLog::kNoToken;
  }
  op_ = my_op;
  context_ = my_context;
}

}  // namespace shim
