#include "replay/run_order.h"

#include <algorithm>
#include <cassert>

#include "scheduler/streams/choose.h"
#include "scheduler/streams/nimble.h"

namespace replay {
namespace {

using scheduler::streams::Choice;
using scheduler::streams::Cost;
using scheduler::streams::Dag;
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

RunOrder OrderBy(std::span<const RunLaunch> launches, Bounds bounds, const Roofline& device,
                 uint64_t rename_bytes_max) {
  RunOrder order;
  std::vector<LaunchTouches> touches;
  std::vector<Cost> costs;
  for (const RunLaunch& launch : launches) {
    touches.push_back(TouchesOfLaunch(launch, bounds));
    costs.push_back(CostOfLaunch(launch.grid, touches.back(), device));
    order.attributed += touches.back().unknown.empty() ? 1 : 0;
    order.grounds.bounds = order.grounds.bounds || touches.back().bounded;
  }
  order.renaming = ChooseRenaming(touches, rename_bytes_max);
  order.grounds.stores = !order.renaming.renames.empty();
  const std::optional<Dag> dag = OrderWith(touches, order.renaming);
  if (!dag.has_value() || dag->nodes() == 0) return order;
  order.length = scheduler::streams::LongestPath(*dag);
  order.width = scheduler::streams::AssignNimble(*dag).streams;
  const Choice choice = Choose(*dag, costs, device.front_end_ns);
  order.concurrent = choice.algorithm != scheduler::streams::Algorithm::kOneStream;
  for (NodeId node = 0; node < dag->nodes(); ++node) {
    for (const NodeId after : dag->Successors(node)) order.edges.push_back({node, after});
  }
  return order;
}

}  // namespace

LaunchTouches TouchesOfLaunch(const RunLaunch& launch, Bounds bounds) {
  if (launch.access == nullptr) return {.touches = {}, .unknown = "the kernel is not known"};
  return TouchesOf(*launch.access, launch.grid, launch.parameters, launch.memory, bounds);
}

RunOrder OrderOf(std::span<const RunLaunch> launches, const Roofline& device,
                 uint64_t rename_bytes_max) {
  RunOrder order = OrderBy(launches, Bounds::kUsed, device, rename_bytes_max);
  if (!order.grounds.bounds) return order;
  RunOrder simple = OrderBy(launches, Bounds::kIgnored, device, rename_bytes_max);
  return simple.length <= order.length ? simple : order;
}

std::vector<bool> WordsRead(const KernelAccess* access, size_t parameter_bytes,
                            const Grounds& grounds) {
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
  const Expressions& expressions = access->expressions;
  std::vector<bool> used(expressions.all().size());
  const auto mark_all = [&](const std::vector<Condition>& conditions) {
    for (const Condition& condition : conditions) {
      expressions.Mark(condition.left, &used);
      expressions.Mark(condition.right, &used);
    }
  };
  for (const Access& each : access->accesses) {
    expressions.Mark(each.range, &used);
    if (grounds.bounds) mark_all(each.conditions);
  }
  for (const CertainStore& each : access->stores) {
    if (!grounds.stores) break;
    expressions.Mark(each.address, &used);
    mark_all(each.conditions);
  }
  for (size_t i = 0; i < used.size(); ++i) {
    const Expression& expression = expressions.all()[i];
    if (used[i] && expression.term == Term::kParameter)
      note(static_cast<uint64_t>(expression.value), expression.bits / 8u);
  }
  return read;
}

}  // namespace replay
