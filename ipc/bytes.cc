#include "ipc/bytes.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace ipc {

std::optional<uint64_t> ParseBytes(std::string_view text) {
  struct Unit {
    const char* name;
    int shift;
  };
  constexpr Unit kUnits[] = {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}, {"B", 0}};
  constexpr double kMax = 4611686018427387904.0;
  absl::string_view number(text.data(), text.size());
  int shift = 0;
  for (const Unit& unit : kUnits) {
    if (!absl::ConsumeSuffix(&number, unit.name)) continue;
    shift = unit.shift;
    break;
  }
  double value = 0;
  if (!absl::SimpleAtod(number, &value) || !(value >= 0)) return std::nullopt;
  const double bytes = std::ldexp(value, shift);
  if (!(bytes < kMax) || (shift == 0 && value != std::floor(value))) return std::nullopt;
  return static_cast<uint64_t>(bytes);
}

}  // namespace ipc
