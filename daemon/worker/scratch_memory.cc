#include "daemon/worker/scratch_memory.h"

#include "ipc/calls/limits.h"

namespace worker {

// Launches on another device might not reach it.
CUdeviceptr SessionScratch::Take() {
  if (state_ != State::kNone || held_.seen_devices.count() != 1) return address_;
  const auto place = [this] {
    return held_.arena.Place(call_.device, ipc::limits::kRenameBytesMax, &address_);
  };
  const CUresult result = memory_.MapIfFree(ipc::limits::kRenameBytesMax, place);
  state_ = result == CUDA_SUCCESS ? State::kThere : State::kRefused;
  return address_;
}

// Graphs under way may use it still. No copy may name it from now on, though it is mapped.
void SessionScratch::GiveBack() {
  if (const AddressSpan there = span(); there.bytes != 0) {
    held_.addresses.GiveUp(there.address, there.bytes);
    PersistentMemory* const memory = &memory_;
    const CUdeviceptr address = address_;
    const CUresult result =
        held_.frees.Free(held_.streams.All(), [memory, address] { memory->FreeRange(address); });
    if (result != CUDA_SUCCESS) held_.addresses.Gone(address);
  }
  Forget();
}

AddressSpan SessionScratch::span() const {
  if (state_ != State::kThere) return {};
  return {address_, ipc::limits::kRenameBytesMax};
}

}  // namespace worker
