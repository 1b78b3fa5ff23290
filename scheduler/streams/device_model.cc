#include "scheduler/streams/device_model.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace scheduler::streams {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

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
  const size_t nodes = assignment.order.size();
  std::vector<int> missing(nodes);
  std::vector<std::vector<NodeId>> releases(nodes);
  std::vector<NodeId> last(At(assignment.streams), kNoNode);
  const auto depend = [&missing, &releases](NodeId node, NodeId on) {
    ++missing[At(node)];
    releases[At(on)].push_back(node);
  };
  for (const NodeId node : assignment.order) {
    NodeId& before = last[At(assignment.stream[static_cast<size_t>(node)])];
    if (before != kNoNode) depend(node, before);
    before = node;
    for (const NodeId other : assignment.waits[At(node)]) depend(node, other);
  }
  DeviceModel device(front_end_ns);
  for (const NodeId node : assignment.order) {
    if (missing[At(node)] == 0) device.Submit(node, costs[At(node)]);
  }
  for (NodeId done = device.Finish(); done != kNoNode; done = device.Finish()) {
    for (const NodeId node : releases[At(done)]) {
      if (--missing[At(node)] == 0) device.Submit(node, costs[At(node)]);
    }
  }
  return device.now_ns();
}

}  // namespace scheduler::streams
