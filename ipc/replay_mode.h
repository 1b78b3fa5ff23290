// How a program's iterations are replayed: the value of --replay and of LANEWAY_REPLAY.
//
//     off          each call is forwarded by itself
//     auto         runs of calls that repeat are replayed while that measures faster
//     always       the same, however fast
//     verify[=N]   as always, and every Nth iteration is executed both ways and compared
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ipc {

struct ReplayMode {
  enum class Kind : uint8_t { kOff, kAuto, kAlways, kVerify };
  Kind kind = Kind::kOff;
  uint32_t verify_every = 0;  // iterations, of kVerify
};

inline constexpr uint32_t kVerifyEvery = 100;
inline constexpr uint32_t kVerifyEveryMax = 1'000'000;

// Nothing for any other text.
std::optional<ReplayMode> ParseReplayMode(std::string_view text);

}  // namespace ipc
