// Reports of kernels (replay/kernel_report.h) and counts of their launches, as text and JSON for
// `laneway kernels`. Pure. Thread safety: stateless.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/graph/launch_counts.h"
#include "cli/graph/records.h"
#include "replay/kernel_report.h"

namespace cli {

// The kernels of a file or a job, and their launches, for text and JSON.
struct KernelsShown {
  replay::FileReport file;
  // Of the file's kernels, in their order, where launches were counted.
  std::optional<std::vector<graph::Launches>> launches;
  graph::Launches other;   // of kernels whose PTX did not come
  int64_t counted_ns = 0;  // for how long
};

// The kernels of a job's images. With `counted`, those on which the device worked longest come
// first.
KernelsShown KernelsOf(const graph::Images& images, const graph::LaunchesByKernel& launches,
                       bool counted);

// A kernel as people read it. `launches` may be null.
std::string KernelText(const replay::KernelReport& kernel,
                       const graph::Launches* launches = nullptr);
// All kernels so.
std::string KernelsText(const KernelsShown& shown);
// "known: 2 of 3 kernels, 40 of 60 launches in 2.0 s".
std::string KnownText(const KernelsShown& shown);
// All of it, as one JSON object.
std::string KernelsJson(const KernelsShown& shown);

}  // namespace cli
