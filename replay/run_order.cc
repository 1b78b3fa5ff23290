#include "replay/run_order.h"

#include <algorithm>
#include <cassert>

#include "scheduler/streams/choose.h"
#include "scheduler/streams/dependencies.h"
#include "scheduler/streams/nimble.h"
#include "scheduler/streams/reduction.h"

namespace replay {
namespace {

using scheduler::streams::Choice;
using scheduler::streams::Cost;
using scheduler::streams::Dag;
using scheduler::streams::Dependencies;
using scheduler::streams::NodeId;
using scheduler::streams::Roofline;

constexpr int64_t kThreadsAtOnce = 640 * 256;  // of a device that is full
constexpr size_t kWordBytes = 4;

int64_t Product(const uint32_t (&sizes)[3]) {
  return std::max<int64_t>(1, int64_t{sizes[0]} * sizes[1] * sizes[2]);
}

Cost CostOfLaunch(const Grid& grid, const LaunchTouches& touches, const Roofline& device) {
  scheduler::streams::Work work;
  for (const Touch& touch : touches.touches) {
    const bool both = touch.access == scheduler::streams::Access::kUpdate;
    work.bytes += static_cast<int64_t>(touch.range.bytes) * (both ? 2 : 1);
  }
  work.blocks = Product(grid.blocks);
  work.blocks_at_once = std::max<int64_t>(1, kThreadsAtOnce / Product(grid.threads));
  return CostOf(work, device);
}

// The most nodes on one path.
int LongestPath(const Dag& dag) {
  std::vector<int> length(scheduler::streams::At(dag.nodes()), 1);
  int longest = 0;
  for (NodeId node = 0; node < dag.nodes(); ++node) {
    int& own = length[scheduler::streams::At(node)];
    for (const NodeId before : dag.Predecessors(node))
      own = std::max(own, length[scheduler::streams::At(before)] + 1);
    longest = std::max(longest, own);
  }
  return longest;
}

}  // namespace

LaunchTouches TouchesOfLaunch(const RunLaunch& launch) {
  if (launch.access == nullptr) return {.touches = {}, .unknown = "the kernel is not known"};
  return TouchesOf(*launch.access, launch.grid, launch.parameters, launch.memory);
}

RunOrder OrderOf(std::span<const RunLaunch> launches, const Roofline& device) {
  RunOrder order;
  Dependencies dependencies;
  std::vector<Cost> costs;
  for (const RunLaunch& launch : launches) {
    const LaunchTouches touches = TouchesOfLaunch(launch);
    costs.push_back(CostOfLaunch(launch.grid, touches, device));
    if (touches.unknown.empty()) {
      ++order.attributed;
      dependencies.Add(touches.touches);
    } else {
      dependencies.AddBarrier();
    }
  }
  const std::optional<Dag> dag = dependencies.Graph();
  if (!dag.has_value() || dag->nodes() == 0) return order;
  const Dag minimal = Reduce(*dag).minimal;
  order.length = LongestPath(minimal);
  order.width = scheduler::streams::AssignNimble(minimal).streams;
  const Choice choice = Choose(minimal, costs, device.front_end_ns);
  order.concurrent = choice.algorithm != scheduler::streams::Algorithm::kOneStream;
  for (NodeId node = 0; node < minimal.nodes(); ++node) {
    for (const NodeId after : minimal.Successors(node)) order.edges.push_back({node, after});
  }
  return order;
}

std::vector<bool> WordsRead(const KernelAccess* access, size_t parameter_bytes) {
  std::vector<bool> read((parameter_bytes + kWordBytes - 1) / kWordBytes);
  if (access == nullptr || !access->unknown.empty()) return read;
  const auto note = [&](uint64_t offset, uint64_t bytes) {
    for (uint64_t at = offset / kWordBytes; at * kWordBytes < offset + bytes; ++at) {
      if (at < read.size()) read[at] = true;
    }
  };
  for (const Origin& origin : access->origins) {
    if (origin.kind == Origin::Kind::kParameter) note(origin.index, sizeof(uint64_t));
  }
  for (const Expression& expression : access->expressions.all()) {
    if (expression.term == Term::kParameter)
      note(static_cast<uint64_t>(expression.value), expression.bits / 8u);
  }
  return read;
}

}  // namespace replay
