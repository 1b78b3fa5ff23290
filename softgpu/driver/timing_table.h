// What LANEWAY_SOFTGPU's `timing=FILE` says: how long kernels and copies take in virtual time.
//
// One rule a line; `#` begins a comment. docs/virtual_time.md explains each:
//
//     device KEY VALUE                                  a number of the device, such as launch_us
//     kernel NAME GRID TIME_US SHARE [skip]             alone on the device
//     blocks NAME GRID MULTIPLY_ACCUMULATES BYTES [skip]   of one block
//
// NAME is a kernel's name as modules have it, GRID is XxYxZ, and either may be `*`. The closest
// rule counts: name and grid, then the name, then the grid, then `* *`. A kernel with `skip` is not
// executed. Thread safety: immutable after the parse.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "scheduler/streams/device_model.h"
#include "scheduler/streams/roofline.h"
#include "scheduler/streams/timeline.h"
#include "softgpu/exec/launch.h"

namespace softgpu {

// A V100 as far as `device` lines do not say otherwise.
struct TimedDevice {
  scheduler::streams::Roofline roofline = scheduler::streams::kV100;
  double host_bytes_a_ns = 15.75;  // each way: PCI Express 3.0 with 16 lanes
  uint64_t sms = 80;
};

struct TimedKernel {
  scheduler::streams::Cost cost;
  bool skips = false;  // the kernel takes its time and is not executed
};

class TimingTable {
 public:
  static constexpr size_t kBytesMax = 16u << 20;

  // Fills `error` with one sentence that names the line when the text is not understood.
  static std::optional<TimingTable> ParseUntrusted(std::string_view text, std::string* error);

  const TimedDevice& device() const { return device_; }
  // Nothing when no rule says it. `blocks_at_once`: of one multiprocessor, at least 1.
  std::optional<TimedKernel> TimeOf(const std::string& name, const Dim3& grid,
                                    uint64_t blocks_at_once) const;
  // A copy or fill within the device: a kernel that moves so many bytes, in blocks of 1 KiB.
  scheduler::streams::TimedWork OnDevice(uint64_t bytes) const;
  // A copy between host and device, on the engine of its way.
  scheduler::streams::TimedWork BesideDevice(uint64_t bytes, bool to_host) const;

 private:
  struct Rule {
    bool of_one_block = false;
    double first = 0, second = 0;  // time_us and share, or multiply-accumulates and bytes
    bool skips = false;
  };

  bool ParseLine(std::string_view line);

  TimedDevice device_;
  std::map<std::string, Rule> rules_;  // by "NAME GRID"
};

}  // namespace softgpu
