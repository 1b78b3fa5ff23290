// One software device: its memory limit, heap, attributes, primary context and memory pools.
//
// Thread safety: every function may be called from any thread.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "softgpu/driver/charge.h"
#include "softgpu/driver/config.h"
#include "softgpu/driver/heap.h"

namespace softgpu {

class Context;
class MemoryPool;

class Device {
 public:
  Device(int ordinal, const Config& config);
  ~Device();

  int ordinal() const { return ordinal_; }
  const Config& config() const { return config_; }
  MemoryLimit& memory() { return memory_; }
  Heap& heap() { return heap_; }            // device and managed memory
  Heap& host_heap() { return host_heap_; }  // pinned memory

  CUuuid Uuid() const;
  std::string PciBusId() const;  // "0000:01:00.0"
  // False for an attribute that cuda.h of this version does not list.
  bool Attribute(CUdevice_attribute attribute, int* value) const;

  // The primary context: alive while retained.
  std::shared_ptr<Context> RetainPrimary();
  CUresult ReleasePrimary();
  void ResetPrimary();
  CUresult SetPrimaryFlags(unsigned flags);
  void PrimaryState(unsigned* flags, int* active);

  std::shared_ptr<MemoryPool> default_pool() const { return default_pool_; }
  std::shared_ptr<MemoryPool> current_pool();
  void SetCurrentPool(std::shared_ptr<MemoryPool> pool);

 private:
  const int ordinal_;
  const Config config_;
  MemoryLimit memory_;
  Heap heap_, host_heap_;

  base::Mutex mutex_;
  std::shared_ptr<Context> primary_ GUARDED_BY(mutex_);
  unsigned primary_references_ GUARDED_BY(mutex_) = 0;
  unsigned primary_flags_ GUARDED_BY(mutex_) = 0;
  std::shared_ptr<MemoryPool> default_pool_;  // set by the constructor alone
  std::shared_ptr<MemoryPool> current_pool_ GUARDED_BY(mutex_);
};

}  // namespace softgpu
