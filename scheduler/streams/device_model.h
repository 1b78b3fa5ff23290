// A device that runs operations of several streams at once, as a model without fitted numbers.
//
// An operation alone on the device takes `time_ns` and uses a share of the device: 1 when it fills
// the device, less when it has too few blocks. Running operations go on at full speed while their
// shares sum to at most 1; past that all slow down by that sum. The front end starts one operation
// at a time, in the order of submission, and takes `front_end_ns` for each. The operation runs
// `launch_ns` after its start began, and uses nothing of the device before.
// The model leaves out caches, and which part of the device (arithmetic, memory) an operation
// wants.
//
// Thread safety: one thread.
#pragma once

#include <functional>
#include <limits>
#include <queue>
#include <tuple>
#include <vector>

#include "scheduler/streams/assignment.h"
#include "scheduler/streams/dag.h"

namespace scheduler::streams {

struct Cost {
  double time_ns = 0;  // at least 0; of the operation alone on the device, once it runs
  double launch_ns = 0;
  double share = 1;  // of the device that it can use, above 0 and at most 1
};

class DeviceModel {
 public:
  explicit DeviceModel(double front_end_ns) : front_end_ns_(front_end_ns) {}

  double now_ns() const { return now_ns_; }
  // What submitted operations that have not finished can use together.
  double share() const { return submitted_share_; }
  // The operation may start now.
  void Submit(NodeId node, const Cost& cost);
  // Lets time pass until the next operation finishes, and returns it; of several at once that with
  // the lowest number first. kNoNode: all have finished, or none finishes by `until_ns` and it is
  // that late now. REQUIRES: until_ns >= now_ns().
  NodeId Finish(double until_ns = std::numeric_limits<double>::infinity());

 private:
  // An operation in a queue, which it leaves at a time in any unit. The earliest operation is on
  // top; among equal times the operation with the lowest number is.
  struct Timed {
    double at = 0;
    NodeId node = kNoNode;
    double time_ns = 0, share = 0;
    bool operator>(const Timed& other) const {
      return std::tie(at, node) > std::tie(other.at, other.node);
    }
  };
  using Queue = std::priority_queue<Timed, std::vector<Timed>, std::greater<Timed>>;

  void PassTo(double time_ns);
  void Begin();  // what the first of launching_ does
  NodeId End();  // what the first of running_ does

  const double front_end_ns_;
  double now_ns_ = 0;
  // Time as running operations feel it: slower than now_ns_ while their shares sum to more than 1.
  // All slow down alike, so an operation's end is known in this time when it begins.
  double felt_ns_ = 0;
  double front_end_free_ns_ = 0;
  double running_share_ = 0;
  double submitted_share_ = 0;
  Queue launching_;  // by now_ns_
  Queue running_;    // by felt_ns_
};

// How long the model takes for all nodes, in ns. The waits of an assignment and the dependencies
// that it was made from take equally long. REQUIRES: a Valid assignment, or a placement of the
// graph; a cost for each node.
double Makespan(const Assignment& assignment, const std::vector<Cost>& costs, double front_end_ns);
double Makespan(const Dag& dag, const Placement& placement, const std::vector<Cost>& costs,
                double front_end_ns);

}  // namespace scheduler::streams
