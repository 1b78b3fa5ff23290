#include "ipc/replay_mode.h"

#include <charconv>

namespace ipc {
namespace {

std::optional<uint32_t> CountOf(std::string_view digits) {
  uint32_t count = 0;
  const char* const end = digits.data() + digits.size();
  const std::from_chars_result read = std::from_chars(digits.data(), end, count);
  if (read.ec != std::errc() || read.ptr != end || count == 0 || count > kVerifyEveryMax)
    return std::nullopt;
  return count;
}

}  // namespace

std::optional<ReplayMode> ParseReplayMode(std::string_view text) {
  using Kind = ReplayMode::Kind;
  constexpr std::string_view kVerify = "verify", kVerifyN = "verify=";
  if (text == "off") return ReplayMode{};
  if (text == "auto") return ReplayMode{.kind = Kind::kAuto};
  if (text == "always") return ReplayMode{.kind = Kind::kAlways};
  if (text == kVerify) return ReplayMode{.kind = Kind::kVerify, .verify_every = kVerifyEvery};
  if (!text.starts_with(kVerifyN)) return std::nullopt;
  const std::optional<uint32_t> every = CountOf(text.substr(kVerifyN.size()));
  if (!every.has_value()) return std::nullopt;
  return ReplayMode{.kind = Kind::kVerify, .verify_every = *every};
}

}  // namespace ipc
