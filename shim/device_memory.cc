#include "shim/device_memory.h"

#include <cstdlib>
#include <cstring>

#include "ipc/client_words.h"
#include "ipc/environment.h"
#include "shim/call_site.h"
#include "shim/client.h"
#include "shim/iterations/iterations.h"
#include "shim/send.h"
#include "shim/streams.h"
#include "shim/sync.h"

namespace shim {
namespace {

using arena::Persistent;
using arena::Range;
using arena::Sites;

// `laneway run` sets such a variable to "off" to switch a feature off.
bool IsWanted(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr || std::strcmp(value, "off") != 0;
}

CUresult Map(const Context& context, Range range) {
  return Call<ipc::Op::ArenaMap>(context.wire, CUdeviceptr{range.base}, size_t{range.bytes});
}

class SessionWorker : public PersistentMemory::Worker {
 public:
  CUresult Map(const Context& context, Range range) override {
    const CUresult result = shim::Map(context, range);
    if (result != CUDA_ERROR_INVALID_VALUE) return result;
    // What was there before is unmapped when its last work is complete.
    if (const CUresult waited = SynchronizeDevice(context.device); waited != CUDA_SUCCESS)
      return waited;
    return shim::Map(context, range);
  }
  void Unmap(int device, Range range) override {
    Post<ipc::Op::ArenaUnmap>(State::WireOfDevice(device), CUdeviceptr{range.base});
  }
  bool FreeBytes(const Context& context, size_t* bytes) override {
    size_t total_bytes = 0;
    return Call<ipc::Op::MemInfo>(context.wire, bytes, &total_bytes) == CUDA_SUCCESS;
  }

  static SessionWorker* Process() {
    static SessionWorker* const worker = new SessionWorker;
    return worker;
  }
};

// Work on other streams may still use an earlier block at the same addresses. Then a join goes out
// before the program gets the address.
CUresult JoinIfNeeded(const Context& context, const arena::Stamp& stamp, int32_t slot) {
  if (!Client::Process().pipeline().fences().OnReuse(stamp, slot)) return CUDA_SUCCESS;
  return Streams::SendJoin(context.wire);
}

}  // namespace

DeviceMemory& DeviceMemory::Process() {
  static DeviceMemory* const memory = new DeviceMemory;
  return *memory;
}

DeviceMemory::DeviceMemory()
    : use_sites_(IsWanted(ipc::kSitesVariable)),
      persistent_(Client::Process().arena_base(), ipc::limits::kPersistentBytes,
                  SessionWorker::Process(),
                  ipc::ClientWordsOf(Client::Process().file().page())->empty_bytes),
      lane_(Client::Process().arena_base() + ipc::limits::kEphemeralOffset,
            ipc::limits::kEphemeralBytes, IsWanted(ipc::kLaneVariable)) {}

void DeviceMemory::ShowLaneBlocks() {
  Client::Process().file().page()->lane_blocks.store(lane_.blocks(), std::memory_order_release);
}

DeviceMemory::Counts DeviceMemory::counts() {
  const base::MutexLock lock(&persistent_.mutex());
  Counts counts = counts_;
  counts.wrong = lane_.wrong();
  return counts;
}

// --- allocation ----------------------------------------------------------------------------------

// The lock is let go while frames are walked: the first walk takes the dynamic linker's.
DeviceMemory::Placement DeviceMemory::Predict(int device, size_t bytes) {
  Placement placement{lane_.Predict(device, bytes), Sites::kNoSite};
  if (placement.predicted != Sites::Class::kUndecided) return placement;
  if (use_sites_) {
    persistent_.mutex().Unlock();
    placement.site = CallSite();
    persistent_.mutex().Lock();
    ++counts_.hashed;
  }
  placement.predicted = lane_.PredictAt(bytes, placement.site);
  return placement;
}

CUresult DeviceMemory::Allocate(const Context& context, size_t bytes, const Order& order,
                                Allocation* made) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > ipc::limits::kPersistentBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  made->device = context.device;
  made->bytes = bytes;
  made->pool = order.pool;
  {
    const base::MutexLock lock(&persistent_.mutex());
    ++counts_.allocations;
    if (lane_.recognised() && !iterations::Iterations::Process().recognised()) lane_.OnLost();
    const Placement placement = Predict(context.device, bytes);
    const bool short_lived = placement.predicted == Sites::Class::kEphemeral;
    made->ephemeral = short_lived && lane_.IsOpen() && TakeEphemeral(context, bytes, order, made);
    if (!made->ephemeral) {
      const CUresult result =
          persistent_.Take(context, {bytes, order.owner, order.slot, short_lived}, &made->block);
      if (result != CUDA_SUCCESS) return result;
    }
    made->base = made->block.address;
    live_bytes_.store(live_bytes() + made->block.bytes, std::memory_order_relaxed);
    made->birth = lane_.OnAllocate({made->base, made->block.bytes}, bytes, placement.site,
                                   made->ephemeral, Client::Process().pipeline().operations());
  }
  return JoinIfNeeded(context, made->block.stamp, order.slot);
}

bool DeviceMemory::TakeEphemeral(const Context& context, size_t bytes, const Order& order,
                                 Allocation* made) {
  arena::Blocks::Taken taken;
  if (!lane_.Take(bytes, &taken)) return false;
  // Meanwhile another thread may have grown the lane, or lost it with its device's last context: so
  // the need is computed anew after each answer.
  while (const uint64_t lane_bytes = lane_.BytesFor(taken)) {
    const uint64_t more = lane_bytes - lane_.lane_bytes();
    lane_.SetDevice(context.device);
    persistent_.mutex().Unlock();
    persistent_.MakeRoom(context, more);
    const CUresult result = Call<ipc::Op::LaneReserve>(context.wire, size_t{lane_bytes});
    persistent_.mutex().Lock();
    if (result != CUDA_SUCCESS) {
      lane_.Refuse(taken);
      return false;
    }
    lane_.Grow(lane_bytes);
  }
  ++counts_.ephemeral;
  lane_.Enter();
  ShowLaneBlocks();
  made->block = {taken.address, taken.bytes, order.owner, 0, taken.index, taken.stamp};
  persistent_.ChargeLocked(context.device, order.owner, static_cast<int64_t>(taken.bytes));
  return true;
}

// --- free ----------------------------------------------------------------------------------------

void DeviceMemory::Free(const Allocation& allocation, int32_t slot) {
  Pipeline& pipeline = Client::Process().pipeline();
  const arena::Stamp stamp = pipeline.fences().OnFree(slot);
  // Work that uses the block is with the worker before the block is counted as gone from the lane.
  const bool sent = !allocation.ephemeral || !pipeline.Holds();
  const Persistent::Block& block = allocation.block;
  std::vector<Range> unmap;
  bool kept = false;
  {
    const base::MutexLock lock(&persistent_.mutex());
    kept = lane_.OnFree({allocation.base, block.bytes, allocation.birth, allocation.ephemeral,
                         block.index, pipeline.operations() != waited_at_, sent},
                        stamp);
    if (allocation.ephemeral) {
      ShowLaneBlocks();
      persistent_.ChargeLocked(allocation.device, block.owner, -static_cast<int64_t>(block.bytes));
    } else {
      persistent_.GiveLocked(allocation.device, block, stamp, &unmap);
    }
    live_bytes_.store(live_bytes() - block.bytes, std::memory_order_relaxed);
  }
  if (!sent) AwaitSending();
  if (kept) {
    Post<ipc::Op::LaneDrop>(State::WireOfDevice(allocation.device),
                            static_cast<CUdeviceptr>(allocation.base));
  }
  persistent_.Unmap(allocation.device, unmap);
}

// --- boundaries ----------------------------------------------------------------------------------

DeviceMemory::Wishes DeviceMemory::OnBoundary() {
  Wishes wishes;
  const base::MutexLock lock(&persistent_.mutex());
  wishes.persistent_bytes = live_bytes();
  lane_.OnBoundary(Client::Process().pipeline().operations(),
                   iterations::Iterations::Process().recognised(), &wishes);
  ShowLaneBlocks();
  persistent_.ReleaseUnneededLocked(wishes.lane_device, &wishes.unneeded);
  return wishes;
}

void DeviceMemory::HoldFreed(bool holds) {
#if LANEWAY_TEST_HOOKS
  // What waiting is worth: scripts/bench orders.
  if (std::getenv("LANEWAY_TEST_FREED_AT_ONCE") != nullptr) return;
#endif
  const base::MutexLock lock(&persistent_.mutex());
  lane_.HoldFreed(holds);
  holds_freed_.store(holds, std::memory_order_relaxed);
}

void DeviceMemory::TellLaneOfWait() {
  const base::MutexLock lock(&persistent_.mutex());
  waited_at_ = Client::Process().pipeline().operations();
  lane_.OnWaited();
}

// Another thread may have sent meanwhile all that was held, and no other call may come: so that is
// looked at under the send lock.
void DeviceMemory::AwaitSending() {
  Pipeline& pipeline = Client::Process().pipeline();
  const base::MutexLock lock(&pipeline.lock());
  if (pipeline.Holds()) {
    awaits_sending_.store(true, std::memory_order_relaxed);
  } else {
    OnAllSent();
  }
}

void DeviceMemory::OnAllSent() {
  awaits_sending_.store(false, std::memory_order_relaxed);
  const base::MutexLock lock(&persistent_.mutex());
  lane_.OnAllSent();
  ShowLaneBlocks();
}

// The context's program frees came first, so what Trim() leaves here is the lane.
bool DeviceMemory::OnContextReset(int device) {
  persistent_.Trim(device);
  const base::MutexLock lock(&persistent_.mutex());
  const bool had_lane = lane_.OnContextReset(device);
  if (had_lane) ShowLaneBlocks();
  return had_lane;
}

}  // namespace shim
