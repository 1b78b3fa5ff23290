// A kernel of a loaded module, and the attributes that a program may set on it.
//
// Thread safety: every function may be called from any thread.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "softgpu/driver/config.h"
#include "softgpu/ptx/module.h"

namespace softgpu {

class Module;

// What launches, functions and library kernels have in common: settable attributes over a parsed
// kernel.
class KernelAttributes {
 public:
  static constexpr unsigned kDynamicSharedBytesDefault = 48u << 10;
  static constexpr unsigned kSharedBytesMax =
      163u << 10;  // static and dynamic together, after opting in

  CUresult Get(const Kernel& kernel, const PtxModule& ptx, const Config& config,
               CUfunction_attribute attribute, int* value) const;
  CUresult Set(const Kernel& kernel, CUfunction_attribute attribute, int value);
  void CopyFrom(const KernelAttributes& other);
  unsigned dynamic_shared_bytes_max() const { return dynamic_shared_bytes_max_.load(); }

 private:
  std::atomic<unsigned> dynamic_shared_bytes_max_{kDynamicSharedBytesDefault};
  std::atomic<int> carveout_{-1};
  std::atomic<int> non_portable_cluster_{0};
  std::atomic<int> cluster_policy_{0};
};

class Function {
 public:
  Function(std::weak_ptr<Module> module, const Kernel* kernel)
      : module_(std::move(module)), kernel_(kernel) {}

  CUfunction handle() { return reinterpret_cast<CUfunction>(this); }
  const Kernel& kernel() const { return *kernel_; }                  // lives as long as the module
  std::shared_ptr<Module> module() const { return module_.lock(); }  // null once unloaded
  KernelAttributes& attributes() { return attributes_; }

 private:
  const std::weak_ptr<Module> module_;
  const Kernel* const kernel_;
  KernelAttributes attributes_;
};

}  // namespace softgpu
