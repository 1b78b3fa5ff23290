// Renaming of memory within a run of launches: which versions of a range may live elsewhere.
//
// A launch that overwrites a range whole, before anything of it is read, begins a new version of
// the range. Versions of one range have nothing in common but the address, so launches that use
// different versions need no order (compilers and processors rename registers for the same reason).
// A version may live elsewhere when later launches of the run overwrite the range again, at once or
// part by part: then nothing outside of the run sees the version. All launches in between must
// reach the version through parameters that may be given another address and reach no other memory.
// The last version of a range stays. Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ipc/calls/limits.h"
#include "replay/launch_ranges.h"
#include "scheduler/streams/dag.h"

namespace replay {

struct Rename {
  uint32_t launch = 0;
  uint32_t parameter = 0;  // its offset
  uint64_t place = 0;      // the parameter's new address, counted from the begin of a scratch area
  bool operator==(const Rename&) const = default;
};

struct Renaming {
  std::vector<Rename> renames;  // by launch and parameter; none twice
  uint64_t bytes = 0;  // of the scratch area, which begins at a multiple of kPlaceAlignment
};

// Addresses keep their remainder by this, so that vector loads stay aligned.
inline constexpr uint64_t kPlaceAlignment = ipc::limits::kAllocationAlignment;

// The versions without which launches would wait for more, at most `bytes_max` of them. Where these
// are not enough, those go first that the longest path needs least.
Renaming ChooseRenaming(std::span<const LaunchTouches> launches, uint64_t bytes_max);

// What must wait for what, by the launches' numbers, when these parameters are renamed: the minimum
// equivalent graph. Nothing: the launches are too many.
std::optional<scheduler::streams::Dag> OrderWith(std::span<const LaunchTouches> launches,
                                                 const Renaming& renaming);

}  // namespace replay
