#include "scheduler/streams/list_schedule.h"

#include <algorithm>
#include <cassert>
#include <queue>
#include <set>
#include <utility>

namespace scheduler::streams {
namespace {

// From the start of each node to the end of the longest path from it.
std::vector<double> LongestPaths(const Dag& dag, const std::vector<Cost>& costs) {
  std::vector<double> paths(At(dag.nodes()));
  for (NodeId node = dag.nodes() - 1; node >= 0; --node) {
    double rest = 0;
    for (const NodeId next : dag.Successors(node)) rest = std::max(rest, paths[At(next)]);
    paths[At(node)] = rest + costs[At(node)].time_ns + costs[At(node)].launch_ns;
  }
  return paths;
}

class ListScheduler {
 public:
  ListScheduler(const Dag& dag, const std::vector<Cost>& costs, const ListRule& rule)
      : dag_(dag),
        costs_(costs),
        rule_(rule),
        paths_(LongestPaths(dag, costs)),
        missing_(At(dag.nodes())),
        stream_(At(dag.nodes()), -1),
        device_(rule.front_end_ns) {
    for (int i = 0; i < std::min(rule.streams_max, dag.nodes()); ++i) free_.insert(i);
  }

  Placement Run() {
    for (NodeId node = 0; node < dag_.nodes(); ++node) {
      missing_[At(node)] = static_cast<int>(dag_.Predecessors(node).size());
      if (missing_[At(node)] == 0) MakeReady(node);
    }
    Start();
    for (NodeId done = device_.Finish(); done != kNoNode; done = device_.Finish()) {
      free_.insert(stream_[At(done)]);
      for (const NodeId next : dag_.Successors(done)) {
        if (--missing_[At(next)] == 0) MakeReady(next);
      }
      Start();
    }
    return {std::move(stream_), std::move(order_)};
  }

 private:
  void MakeReady(NodeId node) { ready_.push({paths_[At(node)], -node}); }

  void Start() {
    while (!ready_.empty() && !free_.empty()) {
      if (rule_.fills && device_.share() >= 1) return;
      const NodeId node = -ready_.top().second;
      ready_.pop();
      stream_[At(node)] = TakeStream(node);
      order_.push_back(node);
      device_.Submit(node, costs_[At(node)]);
    }
  }

  int TakeStream(NodeId node) {
    int best = *free_.begin();
    for (const NodeId before : dag_.Predecessors(node)) {
      if (free_.count(stream_[At(before)]) != 0) best = stream_[At(before)];
    }
    free_.erase(best);
    return best;
  }

  const Dag& dag_;
  const std::vector<Cost>& costs_;
  const ListRule& rule_;
  const std::vector<double> paths_;
  std::vector<int> missing_;  // of each node: on how many unfinished ones it depends
  std::vector<int> stream_;   // of each node that has started
  std::vector<NodeId> order_;
  std::priority_queue<std::pair<double, NodeId>> ready_;  // longest path first, then lowest number
  std::set<int> free_;
  DeviceModel device_;
};

}  // namespace

Placement PlaceByList(const Dag& dag, const std::vector<Cost>& costs, const ListRule& rule) {
  assert(rule.streams_max >= 1 && costs.size() == At(dag.nodes()));
  return ListScheduler(dag, costs, rule).Run();
}

}  // namespace scheduler::streams
