// The images of the modules that a session has loaded, in the order of their first loads. One image
// may be loaded several times. Thread safety: one session's thread.
#pragma once

#include "ipc/calls/vendor.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "ipc/calls/laneway_calls.h"

namespace worker {

class LoadedImages {
 public:
  void Add(CUmodule module, const ipc::ModuleHash& image) { loads_.push_back({module, image}); }
  void Remove(CUmodule module) {
    std::erase_if(loads_, [module](const Load& load) { return load.first == module; });
    ++unloads_;
  }
  void Clear() {
    loads_.clear();
    ++unloads_;
  }
  // How often a module went, and its functions with it: the driver may use their handles again.
  uint64_t unloads() const { return unloads_; }

  using Load = std::pair<CUmodule, ipc::ModuleHash>;
  std::span<const Load> loads() const { return loads_; }

 private:
  std::vector<Load> loads_;
  uint64_t unloads_ = 0;
};

}  // namespace worker
