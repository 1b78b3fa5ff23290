// In which order the launches of a run may be done, where the program launched them one after
// another on one stream.
//
// A launch waits for the earlier launches that touch the same memory, where one of the two writes
// (launch_ranges.h, scheduler/streams/dependencies.h). A launch whose memory is not known waits for
// all launches before, and all launches after wait for it. So an order only ever weakens the
// program's order.
// Nimble (papers, section 3.3.2) assigns streams to operators of a framework; here the same is
// found below it, from what kernels touch. Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "replay/kernel_access.h"
#include "replay/launch_ranges.h"
#include "replay/versions.h"
#include "scheduler/streams/dag.h"
#include "scheduler/streams/roofline.h"

namespace replay {

struct RunLaunch {
  const KernelAccess* access = nullptr;  // null: the kernel is not known
  Grid grid;
  std::span<const std::byte> parameters;
  Memory memory;  // as it is when the launch is done
};

// What an order rests on besides addresses and the shapes of launches.
struct Grounds {
  bool bounds = false;  // what kernels compare their indices with (launch_ranges.h)
  bool stores = false;  // what kernels certainly overwrite: versions are renamed
};

struct RunOrder {
  Grounds grounds;
  Renaming renaming;  // the parameters for which the launches get other addresses
  // What must wait for what, by the launches' numbers: the minimum equivalent graph.
  std::vector<scheduler::streams::Edge> edges;
  bool concurrent = false;  // false: one after another takes no longer
  int width = 1;            // streams that Nimble's assignment takes for all the concurrency
  int length = 0;           // launches on the longest path
  int attributed = 0;       // launches whose memory is known
};

// What one launch touches, or why that is not known.
LaunchTouches TouchesOfLaunch(const RunLaunch& launch, Bounds bounds = Bounds::kUsed);

// The order rests on bounds only where it would be longer without.
// The device's rates decide whether concurrency saves time at all (scheduler/streams/choose.h).
// Versions of ranges are renamed into so many bytes (versions.h).
RunOrder OrderOf(std::span<const RunLaunch> launches, const scheduler::streams::Roofline& device,
                 uint64_t rename_bytes_max = 0);

// Of each 4 bytes of a launch's parameters, whether the proof has read them: with other values in
// the others, the same order holds. A kernel that is not known is in order with all, whatever its
// parameters are.
std::vector<bool> WordsRead(const KernelAccess* access, size_t parameter_bytes,
                            const Grounds& grounds);

}  // namespace replay
