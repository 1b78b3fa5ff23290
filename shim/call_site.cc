#include "shim/call_site.h"

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <algorithm>

namespace shim {

uint64_t CallSite() {
  // The first frames are ours, the same for every call.
  constexpr int kOwnFrames = 1;
  void* frames[kOwnFrames + kSiteFrames];
  const int count = std::max(0, unw_backtrace(frames, kOwnFrames + kSiteFrames));
  uint64_t hash = static_cast<uint64_t>(count);
  for (int i = kOwnFrames; i < count; ++i) {
    hash = (hash ^ reinterpret_cast<uint64_t>(frames[i])) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 29;
  }
  return hash | 1;
}

}  // namespace shim
