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
#include "scheduler/streams/dependencies.h"

namespace replay {

using scheduler::streams::Range;
using scheduler::streams::Touch;

// Where memory is: what the analysis asks its caller.
struct Memory {
  // The allocation that holds this address.
  std::function<std::optional<Range>(uint64_t address)> allocation;
  // A variable of the kernel's module.
  std::function<std::optional<Range>(uint32_t variable)> variable;
};

struct LaunchTouches {
  std::vector<Touch> touches;  // disjoint and ascending; what is read and written is updated
  // Why not all is known: the launch then comes after and before everything else.
  std::string unknown;
};

LaunchTouches TouchesOf(const KernelAccess& access, const Grid& grid,
                        std::span<const std::byte> parameters, const Memory& memory);

}  // namespace replay
