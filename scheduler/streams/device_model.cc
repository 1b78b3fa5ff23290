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
  if (costs_.size() <= At(node)) costs_.resize(At(node) + 1);
  costs_[At(node)] = &cost;
  submitted_share_ += cost.share;
  const double start_ns = std::max(now_ns_, front_end_free_ns_);
  front_end_free_ns_ = start_ns + front_end_ns_;
  launching_.push({start_ns + cost.launch_ns, node});
}

void DeviceModel::PassTo(double time_ns) {
  felt_ns_ += (time_ns - now_ns_) / std::max(1.0, running_share_);
  now_ns_ = time_ns;
}

NodeId DeviceModel::Finish() {
  while (!launching_.empty() || !running_.empty()) {
    const double slower = std::max(1.0, running_share_);
    // Rounding may have felt_ns_ a little past the next end: time does not go back for it.
    const double end_ns = running_.empty()
                              ? kNever
                              : now_ns_ + std::max(0.0, running_.top().first - felt_ns_) * slower;
    if (!launching_.empty() && launching_.top().first < end_ns) {
      const NodeId node = launching_.top().second;
      PassTo(launching_.top().first);
      launching_.pop();
      running_share_ += costs_[At(node)]->share;
      running_.push({felt_ns_ + costs_[At(node)]->time_ns, node});
      continue;
    }
    const NodeId node = running_.top().second;
    now_ns_ = end_ns;
    felt_ns_ = running_.top().first;
    running_.pop();
    running_share_ -= costs_[At(node)]->share;
    submitted_share_ -= costs_[At(node)]->share;
    if (running_.empty()) running_share_ = 0;  // what rounding has left
    if (running_.empty() && launching_.empty()) submitted_share_ = 0;
    return node;
  }
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
