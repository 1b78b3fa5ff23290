// A launch as the program asks for it, checked and packed: to be queued, or to become a node of a
// graph. Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "ipc/calls/laneway_calls.h"
#include "shim/graphs/work.h"
#include "shim/known_launches.h"
#include "shim/state.h"

namespace local {

inline constexpr unsigned kLaunchAttributesMax = 16;

struct LaunchRequest : shim::LaunchShape {
  void** params = nullptr;
  void** extra = nullptr;
  ipc::LaunchAttribute attributes[kLaunchAttributesMax];  // the first attribute_count are set
  unsigned attribute_count = 0;

  void Add(CUlaunchAttributeID id, unsigned x, unsigned y = 0, unsigned z = 0) {
    attributes[attribute_count++] = {.id = id, .value = {x, y, z}};
  }
};

// The packed parameter block: of the program's own (`extra`), or gathered from its pointers.
class ParamBlock {
 public:
  CUresult Fill(const LaunchRequest& launch, const shim::Function& function);
  const void* data() const { return data_; }
  unsigned bytes() const { return bytes_; }
  std::span<const std::byte> block() const {
    return {static_cast<const std::byte*>(data_), bytes_};
  }

 private:
  CUresult FromExtra(void** extra, unsigned wanted);
  std::byte* Room();

  static constexpr size_t kParamBytesOnStack = 4096;
  alignas(16) std::byte on_stack_[kParamBytesOnStack];
  std::unique_ptr<std::byte[]> on_heap_;
  const void* data_ = nullptr;
  unsigned bytes_ = 0;
};

// The function, and what the driver reports at once.
CUresult CheckLaunch(const LaunchRequest& launch, shim::Context* context, shim::Function** function,
                     uint64_t* value);
// The same, as the work of a graph's node. `params.ctx` null: the current context.
CUresult WorkOf(const LaunchRequest& launch, shim::graphs::Work* work);
CUresult WorkOf(const CUDA_KERNEL_NODE_PARAMS_v2& params, shim::graphs::Work* work);

}  // namespace local
