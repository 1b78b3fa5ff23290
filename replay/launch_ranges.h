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
  // Whether the bytes at this address may lie elsewhere while launches of one run need them: nobody
  // looks at them before the run is over. None: no bytes may.
  std::function<bool(uint64_t address)> movable = nullptr;
};

// Memory that a launch touches through one of its parameters.
struct ParameterTouch {
  // The offset of the parameter, which may be given another address: the launch then does the same
  // to the bytes there. Nothing: it may not, or the memory is reached in several ways.
  std::optional<uint32_t> parameter;
  uint64_t value = 0;  // of the parameter
  Touch touch;
};

struct LaunchTouches {
  std::vector<Touch> touches;  // disjoint and ascending; what is read and written is updated
  std::vector<ParameterTouch> by_parameter;  // the same, by parameter; they may overlap
  // What the launch certainly overwrites, and reads no byte of; disjoint and ascending.
  std::vector<Range> covers;
  // Conditions on threads have left out a part of what the addresses alone would reach.
  bool bounded = false;
  // Why not all is known: the launch then comes after and before everything else.
  std::string unknown;
};

// What a kernel compares its index with may be another number each time, where the addresses are
// the same.
enum class Bounds { kUsed, kIgnored };

LaunchTouches TouchesOf(const KernelAccess& access, const Grid& grid,
                        std::span<const std::byte> parameters, const Memory& memory,
                        Bounds bounds = Bounds::kUsed);

}  // namespace replay
