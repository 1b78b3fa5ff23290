// A driver whose graphs are lists of kernels, fills and copies, which run at each launch, and
// messages of such steps: for tests of how a worker replays. Thread safety: one test at a time.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "daemon/worker/scratch_memory.h"
#include "ipc/calls.h"
#include "ipc/driver_table.h"

namespace worker {

struct Ran {
  uintptr_t function = 0;
  uint32_t argument = 0;
  uintptr_t stream = 0;
  bool operator==(const Ran&) const = default;
};

// Functions of steps that are no launches.
constexpr uintptr_t kFill = 1, kCopy = 2;

struct LaunchGraphs {
  std::map<uintptr_t, std::vector<uintptr_t>> graphs;  // graph or executable: nodes in order
  std::vector<std::pair<size_t, size_t>> edges;        // of the last graph, by places in it
  std::map<uintptr_t, Ran> nodes;
  std::set<uintptr_t> alive;
  std::vector<Ran> ran;
  uintptr_t next = 1;
  uint64_t instantiated = 0, set = 0;
  std::function<void(const Ran&)> run;  // of each step that a graph runs
  CUresult add = CUDA_SUCCESS, change = CUDA_SUCCESS, launch = CUDA_SUCCESS;
};

// The one driver, as new.
LaunchGraphs& FreshLaunchGraphs();
// The table's graphs are that driver's.
void AddLaunchGraphs(ipc::DriverTable* table);

// Scratch memory of the test.
class FakeScratch final : public ScratchMemory {
 public:
  CUdeviceptr Take() override {
    ++taken;
    return address;
  }
  void GiveBack() override { ++given_back; }

  CUdeviceptr address = 0x100000;  // 0: there is none
  int taken = 0, given_back = 0;
};

// A step of the test: names, which the source looks up.
struct Named {
  uint32_t function = 0;
  uint32_t stream = 0;
  uint32_t argument = 0;    // of a fill its value, of a copy its bytes
  uint32_t bytes_more = 0;  // of arguments
  ipc::Op op = ipc::Op::Launch;
  uint16_t reserved = 0;
};
// Appends a whole message, padded.
void AppendStep(const Named& named, std::vector<std::byte>* messages);

}  // namespace worker
