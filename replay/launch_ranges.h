// What one launch touches: a kernel's accesses (kernel_access.h) with the addresses, the grid and
// the allocations of the moment put in.
//
// Thread safety: pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "replay/kernel_access.h"

namespace replay {

struct Range {
  uint64_t begin = 0, end = 0;
  bool operator==(const Range&) const = default;
};

struct Touch {
  Range range;
  uint8_t use = 0;  // of Use
};

// Where memory is: what the analysis asks its caller.
struct Memory {
  // The allocation that holds this address.
  std::function<std::optional<Range>(uint64_t address)> allocation;
  // A variable of the kernel's module.
  std::function<std::optional<Range>(uint32_t variable)> variable;
};

struct LaunchTouches {
  std::vector<Touch> touches;  // disjoint and ascending; an address has all its uses
  // Why not all is known: the launch then comes after and before everything else.
  std::string unknown;
};

LaunchTouches TouchesOf(const KernelAccess& access, const Grid& grid,
                        std::span<const std::byte> parameters, const Memory& memory);

}  // namespace replay
