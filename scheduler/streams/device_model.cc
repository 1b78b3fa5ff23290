#include "scheduler/streams/device_model.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <map>

namespace scheduler::streams {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// One run of all nodes. A node is submitted when all nodes before it have finished; nodes that may
// be submitted at the same time are, in the order of issue.
class Run {
 public:
  // `others(node)`: the nodes before a node, besides the last node on the same stream.
  template <typename Others>
  Run(const std::vector<int>& stream, const std::vector<NodeId>& order, const Others& others)
      : order_(order), missing_(order.size()), releases_(order.size()) {
    std::map<int, NodeId> last;
    for (const NodeId node : order) {
      NodeId& before = last.try_emplace(stream[At(node)], kNoNode).first->second;
      if (before != kNoNode) Depend(node, before);
      before = node;
      for (const NodeId other : others(node)) Depend(node, other);
    }
  }

  double Time(const std::vector<Cost>& costs, double front_end_ns) {
    DeviceModel device(front_end_ns);
    for (const NodeId node : order_) {
      if (missing_[At(node)] == 0) device.Submit(node, costs[At(node)]);
    }
    for (NodeId done = device.Finish(); done != kNoNode; done = device.Finish()) {
      for (const NodeId node : releases_[At(done)]) {
        if (--missing_[At(node)] == 0) device.Submit(node, costs[At(node)]);
      }
    }
    return device.now_ns();
  }

 private:
  void Depend(NodeId node, NodeId on) {
    ++missing_[At(node)];
    releases_[At(on)].push_back(node);
  }

  const std::vector<NodeId>& order_;
  std::vector<int> missing_;  // of each node: how many nodes before it are unfinished
  std::vector<std::vector<NodeId>>
      releases_;  // of each node: nodes after it, in the order of issue
};

}  // namespace

void DeviceModel::Submit(NodeId node, const Cost& cost) {
  assert(cost.share > 0 && cost.share <= 1 && cost.time_ns >= 0 && cost.launch_ns >= 0);
  submitted_share_ += cost.share;
  const double start_ns = std::max(now_ns_, front_end_free_ns_);
  front_end_free_ns_ = start_ns + front_end_ns_;
  launching_.push({start_ns + cost.launch_ns, node, cost.time_ns, cost.share});
}

void DeviceModel::PassTo(double time_ns) {
  felt_ns_ += (time_ns - now_ns_) / std::max(1.0, running_share_);
  now_ns_ = time_ns;
}

void DeviceModel::Begin() {
  Timed begun = launching_.top();
  PassTo(begun.at);
  launching_.pop();
  running_share_ += begun.share;
  begun.at = felt_ns_ + begun.time_ns;
  running_.push(begun);
}

NodeId DeviceModel::End() {
  const Timed ended = running_.top();
  running_.pop();
  felt_ns_ = ended.at;
  running_share_ -= ended.share;
  submitted_share_ -= ended.share;
  if (running_.empty()) running_share_ = 0;  // what rounding has left
  if (running_.empty() && launching_.empty()) submitted_share_ = 0;
  return ended.node;
}

NodeId DeviceModel::Finish(double until_ns) {
  for (;;) {
    const double slower = std::max(1.0, running_share_);
    // Rounding may have felt_ns_ a little past the next end: time does not go back for it.
    const double end_ns =
        running_.empty() ? kNever : now_ns_ + std::max(0.0, running_.top().at - felt_ns_) * slower;
    const double begin_ns = launching_.empty() ? kNever : launching_.top().at;
    if (std::min(begin_ns, end_ns) > until_ns || (launching_.empty() && running_.empty())) break;
    if (begin_ns < end_ns) {
      Begin();
      continue;
    }
    now_ns_ = end_ns;
    return End();
  }
  if (until_ns != kNever) PassTo(until_ns);
  return kNoNode;
}

double Makespan(const Assignment& assignment, const std::vector<Cost>& costs, double front_end_ns) {
  const auto waits = [&assignment](NodeId node) -> const std::vector<NodeId>& {
    return assignment.waits[At(node)];
  };
  return Run(assignment.stream, assignment.order, waits).Time(costs, front_end_ns);
}

double Makespan(const Dag& dag, const Placement& placement, const std::vector<Cost>& costs,
                double front_end_ns) {
  const auto dependencies = [&dag](NodeId node) { return dag.Predecessors(node); };
  return Run(placement.stream, placement.order, dependencies).Time(costs, front_end_ns);
}

}  // namespace scheduler::streams
