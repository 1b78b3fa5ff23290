// How much concurrency of published networks is left in their calls: each operator is a launch of a
// PTX kernel whose parameters point into memory that is freed at its last use and used again.
//
// tests/scheduler/streams/freed_memory_test.cc names what operators touch. Here the analysis of the
// kernels' PTX finds it out, from parameters, grid and allocations. The kernels read anywhere in
// their inputs, as convolutions do, and write their outputs by thread.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "replay/launch_ranges.h"
#include "scheduler/streams/dependencies.h"
#include "tests/replay/parsed_kernel.h"
#include "tests/scheduler/streams/best_fit.h"
#include "tests/scheduler/streams/graphs.h"
#include "tests/scheduler/streams/networks.h"

namespace replay {
namespace {

using scheduler::streams::At;
using scheduler::streams::BestFit;
using scheduler::streams::NodeId;
using scheduler::streams::Operator;

constexpr uint64_t kArena = 0x7f00'0000'0000, kWeights = 0x7e00'0000'0000;
constexpr uint64_t kWeightsBytes = 1 << 20;
constexpr unsigned kThreads = 256;

// The last parameter is the output, the one before it the weights: read as all inputs are.
std::string KernelOf(size_t inputs) {
  std::string parameters, loads;
  for (size_t i = 0; i < inputs; ++i) {
    const std::string name = "p" + std::to_string(i);
    parameters += ".param .u64 " + name + ", ";
    loads +=
        "ld.param.u64 %rd1, [" + name +
        "];\nld.global.u32 %r5, [%rd1];\nmul.wide.u32 %rd2, %r5, 4;\nadd.s64 %rd3, %rd1, %rd2;\n"
        "ld.global.f32 %f1, [%rd3];\nadd.f32 %f2, %f2, %f1;\n";
  }
  return ".version 8.3\n.target sm_80\n.address_size 64\n.visible .entry k(" + parameters +
         ".param .u64 out)\n{\n.reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<4>;\n"
         "mov.f32 %f2, 0f00000000;\n" +
         loads +
         "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\n"
         "mad.lo.s32 %r4, %r1, %r2, %r3;\nmul.wide.s32 %rd4, %r4, 4;\nld.param.u64 %rd5, [out];\n"
         "add.s64 %rd6, %rd5, %rd4;\nst.global.f32 [%rd6], %f2;\nret;\n}\n";
}

class Recording {
 public:
  explicit Recording(uint64_t kept_bytes) : allocator_(kept_bytes) {}

  void Run(const std::vector<Operator>& operators) {
    std::vector<int> readers(operators.size());
    for (const Operator& each : operators) {
      for (const NodeId parent : ParentsOf(each)) ++readers[At(parent)];
    }
    for (const Operator& each : operators) {
      outputs_.push_back(allocator_.Allocate(static_cast<uint64_t>(each.elements_written) * 4));
      live_[outputs_.back().begin] = outputs_.back().bytes;
      Launch(each);
      for (const NodeId parent : ParentsOf(each)) {
        if (--readers[At(parent)] > 0) continue;
        live_.erase(outputs_[At(parent)].begin);
        allocator_.Free(outputs_[At(parent)]);
      }
    }
  }

  int width() const { return scheduler::streams::Width(*dependencies_.Graph()); }
  int unknown() const { return unknown_; }

 private:
  static std::vector<NodeId> ParentsOf(const Operator& each) {
    std::vector<NodeId> parents = each.parents;
    std::sort(parents.begin(), parents.end());
    parents.erase(std::unique(parents.begin(), parents.end()), parents.end());
    return parents;
  }

  std::optional<Range> AllocationAt(uint64_t address) const {
    if (address - kWeights < kWeightsBytes) return Range{kWeights, kWeightsBytes};
    std::map<uint64_t, uint64_t>::const_iterator next = live_.upper_bound(address - kArena);
    if (next == live_.begin()) return std::nullopt;
    --next;
    if (address - kArena >= next->first + next->second) return std::nullopt;
    return Range{kArena + next->first, next->second};
  }

  void Launch(const Operator& each) {
    std::vector<uint64_t> pointers;
    for (const NodeId parent : each.parents)
      pointers.push_back(kArena + outputs_[At(parent)].begin);
    pointers.push_back(kWeights);
    const KernelAccess& access = AccessOf(pointers.size());
    pointers.push_back(kArena + outputs_.back().begin);
    std::vector<std::byte> parameters(pointers.size() * 8);
    std::memcpy(parameters.data(), pointers.data(), parameters.size());
    const uint32_t blocks =
        static_cast<uint32_t>((each.elements_written + kThreads - 1) / kThreads);
    const Grid grid = {.blocks = {blocks, 1, 1}, .threads = {kThreads, 1, 1}};
    const Memory memory = {
        .allocation = [this](uint64_t address) { return AllocationAt(address); },
        .variable = [](uint32_t) { return std::nullopt; },
    };
    const LaunchTouches found = TouchesOf(access, grid, parameters, memory);
    unknown_ += found.unknown.empty() ? 0 : 1;
    dependencies_.Add(found.touches);
  }

  const KernelAccess& AccessOf(size_t inputs) {
    std::unique_ptr<KernelAccess>& access = accesses_[inputs];
    if (access == nullptr) {
      access =
          std::make_unique<KernelAccess>(Analyse(testing::ParsedKernel(KernelOf(inputs)).kernel()));
    }
    return *access;
  }

  BestFit allocator_;
  scheduler::streams::Dependencies dependencies_;
  std::vector<Range> outputs_;         // in the arena, by operator
  std::map<uint64_t, uint64_t> live_;  // bytes by begin
  std::map<size_t, std::unique_ptr<KernelAccess>> accesses_;
  int unknown_ = 0;
};

constexpr uint64_t kMiB = 1 << 20;

struct Row {
  uint64_t kept_bytes;
  int widths[5];
};

constexpr const char* kNetworks[] = {"inception_v3", "darts", "amoebanet", "nasnet_a_mobile",
                                     "nasnet_a_large"};
constexpr Row kRows[] = {
    {0, {3, 3, 4, 3, 3}},
    {kMiB, {6, 7, 8, 11, 6}},
    {4 * kMiB, {6, 7, 11, 13, 8}},
    {16 * kMiB, {6, 7, 11, 13, 12}},
    {std::numeric_limits<uint64_t>::max(), {6, 7, 11, 13, 16}},
};

TEST(NetworkLaunchesTest, DegreesByBytesKeptBackBeforeReuse) {
  for (size_t network = 0; network < std::size(kNetworks); ++network) {
    const std::vector<Operator> operators = scheduler::streams::ReadNetwork(kNetworks[network]);
    for (const Row& row : kRows) {
      Recording recording(row.kept_bytes);
      recording.Run(operators);
      EXPECT_EQ(recording.unknown(), 0) << kNetworks[network];
      EXPECT_NEAR(recording.width(), row.widths[network], 1)
          << kNetworks[network] << ", " << row.kept_bytes << " bytes kept";
    }
  }
}

}  // namespace
}  // namespace replay
