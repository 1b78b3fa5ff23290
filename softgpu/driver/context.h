// A context: streams, limits, the state of faults, and what was created in it.
//
// It also keeps the order that CUDA promises between the legacy default stream and the blocking
// streams: every submission takes `order_mutex_` and records what it must wait for. Thread safety:
// every function may be called from any thread.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "softgpu/driver/context_limits.h"
#include "softgpu/driver/operation.h"

namespace softgpu {

class Device;
class Stream;

class Context : public std::enable_shared_from_this<Context> {
 public:
  static std::shared_ptr<Context> Create(Device* device, unsigned flags, bool primary);
  // The context that is current on this thread; null when there is none.
  static std::shared_ptr<Context> Current();
  // Drops the default streams of a thread that has ended, in every context.
  static void ForgetThread(uint64_t thread_id);

  Device& device() const { return *device_; }
  uint64_t id() const { return id_; }
  bool primary() const { return primary_; }
  unsigned flags() const { return flags_.load(); }
  void set_flags(unsigned flags) { flags_ = flags; }
  bool blocking_sync() const { return (flags_.load() & CU_CTX_SCHED_BLOCKING_SYNC) != 0; }
  CUcontext handle() { return reinterpret_cast<CUcontext>(this); }

  // Waits for all work, then ends every object of the context. Later calls find it destroyed.
  void Destroy();
  bool destroyed() const { return destroyed_.load(); }

  // --- streams
  std::shared_ptr<Stream> CreateStream(unsigned flags, int priority);
  void RemoveStream(const std::shared_ptr<Stream>& stream);  // work in it still runs
  std::shared_ptr<Stream> LegacyStream();
  std::shared_ptr<Stream> PerThreadStream(uint64_t thread_id);

  // Queues `operation` behind what CUDA's rules put before it. Returns its sequence number in
  // `stream`.
  uint64_t Submit(const std::shared_ptr<Stream>& stream, std::unique_ptr<Operation> operation,
                  bool wake = true);
  // Submit, wait, and report the fault if there is one.
  CUresult Run(const std::shared_ptr<Stream>& stream, std::unique_ptr<Operation> operation);
  CUresult Synchronize();  // every stream
  // One stream; for the legacy stream that includes the blocking streams it is ordered with.
  CUresult Synchronize(const std::shared_ptr<Stream>& stream);
  std::vector<std::shared_ptr<Stream>> Streams();
  bool IsLegacy(const Stream& stream);
  // What an event recorded on the context, or a wait by it, covers: all work submitted so far.
  std::vector<Dependency> Pending();

  // --- faults: the code that every later call returns, or CUDA_SUCCESS
  CUresult Fault() const;
  // The first code wins; the words of it were logged by who found it.
  void RaiseFault(CUresult code);
  // Set by a fault: running kernels stop soon.
  const std::atomic<bool>* cancel() const { return &cancel_; }

  // --- device printf: text waits here for the next synchronisation
  void Print(CUstream stream, std::string_view text);
  void FlushPrints();

  // --- limits and preferences
  ContextLimits& limits() { return limits_; }
  std::atomic<CUfunc_cache> cache_config{CU_FUNC_CACHE_PREFER_NONE};
  std::atomic<CUsharedconfig> shared_config{CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE};

  // --- peers: false when the state is the wanted one already
  bool EnablePeer(uint64_t context_id);
  bool DisablePeer(uint64_t context_id);

  Context(Device* device, unsigned flags, bool primary);
  ~Context();

 private:
  std::shared_ptr<Stream> AddStreamLocked(unsigned flags, int priority) REQUIRES(order_mutex_);
  void AddDependencies(const Stream& stream, Operation* operation) REQUIRES(order_mutex_);

  Device* const device_;
  const uint64_t id_;
  const bool primary_;
  std::atomic<unsigned> flags_;
  std::atomic<bool> destroyed_{false};
  std::atomic<bool> cancel_{false};
  std::atomic<CUresult> fault_{CUDA_SUCCESS};
  ContextLimits limits_;

  base::Mutex order_mutex_;
  // All streams; removed ones stay until their work is done.
  std::vector<std::shared_ptr<Stream>> streams_ GUARDED_BY(order_mutex_);
  std::shared_ptr<Stream> legacy_ GUARDED_BY(order_mutex_);
  // By ThreadState::id.
  std::map<uint64_t, std::shared_ptr<Stream>> per_thread_ GUARDED_BY(order_mutex_);

  mutable base::Mutex mutex_;
  std::string prints_ GUARDED_BY(mutex_);
  std::set<uint64_t> peers_ GUARDED_BY(mutex_);  // context ids
};

}  // namespace softgpu
