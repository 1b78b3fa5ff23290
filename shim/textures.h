// The resources of the program's texture and surface objects, by the numbers of the objects.
//
// The numbers are the driver's own, because kernels get them inside their parameters; so they are
// no handles of a table. Thread safety: all methods.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "shim/lock_order.h"

namespace shim {

class Textures {
 public:
  enum class Kind { kTexture, kSurface };
  struct Facts {
    CUDA_RESOURCE_DESC resource = {};  // arrays by the program's handles
    CUDA_TEXTURE_DESC description = {};
    std::optional<CUDA_RESOURCE_VIEW_DESC> view;
    uint64_t context = 0;
    uint32_t wire = 0;
  };
  struct Entry {
    Kind kind;
    unsigned long long number;
    uint32_t wire;
  };

  void Add(Kind kind, unsigned long long number, const Facts& facts);
  std::optional<Facts> Find(Kind kind, unsigned long long number) const;
  // Empty when there is none.
  std::optional<Entry> Remove(Kind kind, unsigned long long number);
  bool empty() const;
  std::vector<Entry> OfContext(uint64_t context) const;

 private:
  using Key = std::pair<Kind, unsigned long long>;
  mutable base::Mutex mutex_ ACQUIRED_AFTER(lock_order::kKeeping);
  std::map<Key, Facts> objects_ GUARDED_BY(mutex_);
};

}  // namespace shim
