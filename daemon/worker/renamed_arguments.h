// Parameters of a launch that get other addresses than the program has passed: those of the
// session's scratch memory (launch_orders.h). Thread safety: none.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "daemon/worker/kernel_node.h"

namespace worker {

struct RenamedParameter {
  uint32_t launch = 0;      // in its order
  uint32_t offset = 0;      // among the launch's parameters
  CUdeviceptr address = 0;  // or its distance from the begin of the scratch memory
};

class RenamedArguments {
 public:
  // Gives the launch of this number its addresses among `all`, in a copy of its arguments that
  // lives as long as this object. False: it has no such parameter.
  bool SetUntrusted(std::span<const RenamedParameter> all, size_t number, KernelLaunch* launch) {
    for (const RenamedParameter& each : all) {
      if (each.launch != number) continue;
      if (launch->param_bytes < sizeof each.address ||
          each.offset > launch->param_bytes - sizeof each.address)
        return false;
      if (bytes_.empty()) {
        const std::byte* const passed = static_cast<const std::byte*>(launch->params);
        bytes_.assign(passed, passed + launch->param_bytes);
        launch->params = bytes_.data();
      }
      std::memcpy(bytes_.data() + each.offset, &each.address, sizeof each.address);
    }
    return true;
  }

 private:
  std::vector<std::byte> bytes_;  // empty: nothing is renamed
};

}  // namespace worker
