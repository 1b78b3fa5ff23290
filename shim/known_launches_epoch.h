// Until when the launches that threads know stay known (shim/known_launches.h).
// Thread safety: any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace shim {

inline std::atomic<uint64_t> known_launches_epoch{0};

inline uint64_t KnownLaunchesEpoch() {
  return known_launches_epoch.load(std::memory_order_acquire);
}
// To be called once the change can be seen.
inline void ForgetKnownLaunches() { known_launches_epoch.fetch_add(1, std::memory_order_release); }

}  // namespace shim
