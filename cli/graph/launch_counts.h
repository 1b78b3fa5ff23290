// How often a job launches each of its kernels, and how long the device works on them: counted from
// the records and the device times of a trace in detail (cli/graph/records.h).
//
// Pure. Thread safety: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "cli/graph/records.h"

namespace graph {

struct Launches {
  uint64_t count = 0;
  int64_t time_ns = 0;  // of those launches whose time has come

  void Add(const Launches& other) {
    count += other.count;
    time_ns += other.time_ns;
  }
};

// A kernel of a module's image. One whose name is not known has an empty one.
using KernelOfImage = std::pair<ImageHash, std::string>;
using LaunchesByKernel = std::map<KernelOfImage, Launches>;

// Records and times of one session come in any order; they belong together by their number.
class LaunchCounts {
 public:
  void Add(const Record& record);
  void AddTime(uint32_t number, int64_t time_ns);

  const LaunchesByKernel& by_kernel() const { return by_kernel_; }

 private:
  // Of launches without time and of times without launch. Older ones are given up: what belongs to
  // them was lost.
  static constexpr size_t kOpenMax = 1u << 16;

  LaunchesByKernel by_kernel_;
  std::map<uint32_t, Launches*> untimed_;  // elements of by_kernel_, which stay where they are
  std::map<uint32_t, int64_t> times_;
};

}  // namespace graph
