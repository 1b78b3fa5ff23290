// A verdict says whether replay of one loop body was faster, as measured (shim/benefit_gate.h).
// A client tells lanewayd its verdicts, and lanewayd tells later clients (docs/replay.md).
//
// A body is named by its content: its kernels, their modules' bytes and their grids, so the name is
// the same at the next start of the program. Thread safety: functions without state.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace ipc {

struct ReplayVerdict {
  uint64_t body = 0;      // its content's hash; never 0
  uint32_t permille = 0;  // time of a replayed iteration to that of a forwarded one
  uint32_t replays = 0;   // 1: such iterations are replayed; 0: they are forwarded
  bool operator==(const ReplayVerdict&) const = default;
};

inline constexpr uint32_t kReplayPermilleMax = 100'000;

// A ratio of times as verdicts keep it, and back. Rounded, so that a ratio that was kept is kept
// unchanged. 0 stays 0: nothing was measured; any other ratio is at least 1 permille.
inline uint32_t PermilleOf(double ratio) {
  if (ratio == 0) return 0;
  return static_cast<uint32_t>(
      std::lround(std::clamp(ratio * 1000, 1.0, 1.0 * kReplayPermilleMax)));
}
inline double RatioOfUntrusted(uint32_t permille) {
  return std::min(permille, kReplayPermilleMax) / 1000.0;
}

// True when the numbers are a verdict. They may come from another process, or from a file.
inline bool IsSound(const ReplayVerdict& verdict) {
  return verdict.body != 0 && verdict.permille != 0 && verdict.permille <= kReplayPermilleMax &&
         verdict.replays <= 1;
}

}  // namespace ipc
