// For which share of the last half second each device had work, as the scheduler knows it: a
// session held its lane and had something to do. NVML's figure of the same name means kernels.
//
// A session that is the only one does not report idle periods under 50 ms (daemon/worker/gate.h),
// so they count as work. Thread safety: none; pure.
#pragma once

#include <array>
#include <cstdint>

#include "ipc/calls/limits.h"
#include "ipc/control.h"
#include "scheduler/state.h"

namespace control {

class DeviceUse {
 public:
  static constexpr int64_t kWindowUs = 500'000;

  // From the last call until now the scheduler's state was this one.
  void Pass(const scheduler::State& state, int64_t now_us);
  // Of the last whole window, which ended kWindowUs ago at most: 0 to 100.
  unsigned PercentOf(uint32_t device) const;

 private:
  using Flags = std::array<bool, ipc::control::kDevicesMax>;
  void Add(const Flags& busy, int64_t us);
  void EndWindow();

  int64_t began_us_ = 0;  // the window that is filled
  int64_t seen_us_ = 0;   // until when it is
  std::array<int64_t, ipc::control::kDevicesMax> busy_us_ = {};
  std::array<unsigned, ipc::control::kDevicesMax> percent_ = {};
};

}  // namespace control
