#include "scheduler/streams/timeline.h"

#include <algorithm>
#include <cassert>
#include <deque>
#include <limits>
#include <utility>

namespace scheduler::streams {
namespace {

// Numbers of work come round again. Those of long ago have ended: whoever adds work bounds
// pending().
constexpr NodeId kNumbers = 1 << 30;

}  // namespace

struct Timeline::Point {
  TimedWork work;
  bool reached = false;
  double at_ns = 0;  // once reached
  size_t missing = 0;
  std::vector<Moment> next;  // each of them misses this one
};

Timeline::Timeline(double front_end_ns) : device_(front_end_ns) {}

// Points hold what waits for them: long chains are taken apart one by one, not by recursion.
Timeline::~Timeline() {
  std::deque<Moment> points;
  for (std::pair<const NodeId, Moment>& each : running_) points.push_back(std::move(each.second));
  while (!points.empty()) {
    const Moment point = std::move(points.front());
    points.pop_front();
    for (Moment& next : point->next) points.push_back(std::move(next));
    point->next.clear();
  }
}

Timeline::Moment Timeline::Join(const std::vector<Moment>& moments) { return After({}, moments); }

Timeline::Moment Timeline::Add(const TimedWork& work, const Moment& after) {
  return After(work, {after});
}

Timeline::Moment Timeline::After(const TimedWork& work, const std::vector<Moment>& moments) {
  const Moment point = std::make_shared<Point>();
  point->work = work;
  ++pending_;
  for (const Moment& moment : moments) {
    if (moment == nullptr || moment->reached) continue;
    ++point->missing;
    moment->next.push_back(point);
  }
  if (point->missing == 0) Start(point);
  return point;
}

void Timeline::Start(const Moment& point) {
  const Cost& cost = point->work.cost;
  if (point->work.kind == TimedWork::Kind::kNone) return Reach(point);
  const NodeId number = next_number_;
  next_number_ = (next_number_ + 1) % kNumbers;
  running_.emplace(number, point);
  if (point->work.kind == TimedWork::Kind::kKernel) return device_.Submit(number, cost);
  const bool to_device = point->work.kind == TimedWork::Kind::kCopyToDevice;
  double& free_ns = engine_free_ns_[to_device ? 0 : 1];
  free_ns = std::max(free_ns, now_ns()) + cost.launch_ns + cost.time_ns;
  copies_.push({free_ns, number});
}

void Timeline::Reach(const Moment& point) {
  std::deque<Moment> reached = {point};
  while (!reached.empty()) {
    const Moment each = std::move(reached.front());
    reached.pop_front();
    each->reached = true;
    each->at_ns = now_ns();
    --pending_;
    for (Moment& next : std::exchange(each->next, {})) {
      if (--next->missing > 0) continue;
      if (next->work.kind == TimedWork::Kind::kNone) {
        reached.push_back(std::move(next));
      } else {
        Start(next);
      }
    }
  }
}

void Timeline::Step() {
  const double copy_ns =
      copies_.empty() ? std::numeric_limits<double>::infinity() : copies_.top().at_ns;
  NodeId number = device_.Finish(copy_ns);
  if (number == kNoNode) {
    assert(!copies_.empty());  // every moment waits for work in the end
    number = copies_.top().number;
    copies_.pop();
  }
  const std::map<NodeId, Moment>::iterator ended = running_.find(number);
  const Moment point = std::move(ended->second);
  running_.erase(ended);
  Reach(point);
}

double Timeline::Wait(const Moment& moment) {
  if (moment == nullptr) return now_ns();
  while (!moment->reached) Step();
  return moment->at_ns;
}

}  // namespace scheduler::streams
