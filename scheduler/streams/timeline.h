// Virtual time of a device whose work comes bit by bit, as a program's calls bring it.
//
// Kernels share the device as in device_model.h. Copies between host and device take one engine
// each way, one after another, and nothing of the device. Each piece of work begins when the moment
// before it is reached. Work takes no time of the host: the host's clock stands still while calls
// come, and goes on where the host waits. So the order of calls and waits alone decides every time,
// however fast the machine is.
//
// `now_ns` is the host's clock. Work that comes later cannot begin before that: all ends up to now
// are settled, and later ends are settled when the host waits for them. Thread safety: none.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <tuple>
#include <vector>

#include "scheduler/streams/device_model.h"

namespace scheduler::streams {

// One piece of work, as far as its time goes.
struct TimedWork {
  enum class Kind { kNone, kKernel, kCopyToDevice, kCopyToHost };
  Kind kind = Kind::kNone;  // kNone: takes no time
  Cost cost;                // of copies the share counts for nothing
};

class Timeline {
 public:
  // When something has happened that others may wait for; null: at once. A moment belongs to the
  // timeline that it comes from.
  struct Point;
  using Moment = std::shared_ptr<Point>;

  explicit Timeline(double front_end_ns);
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  double now_ns() const { return device_.now_ns(); }
  // Points that are not reached.
  size_t pending() const { return pending_; }

  // The moment when all of `moments` are reached, and not before now.
  Moment Join(const std::vector<Moment>& moments);
  // The end of work that begins at `after`.
  Moment Add(const TimedWork& work, const Moment& after);
  // The host waits: time passes until the moment is reached. Returns when that was.
  double Wait(const Moment& moment);

 private:
  struct CopyEnd {
    double at_ns = 0;
    NodeId number = kNoNode;
    bool operator>(const CopyEnd& other) const {
      return std::tie(at_ns, number) > std::tie(other.at_ns, other.number);
    }
  };

  Moment After(const TimedWork& work, const std::vector<Moment>& moments);
  void Start(const Moment& point);  // all before it is reached
  void Reach(const Moment& point);  // and what waits for it alone
  void Step();                      // to the end of the next work

  DeviceModel device_;
  std::array<double, 2> engine_free_ns_ = {};  // to the device, to the host
  std::priority_queue<CopyEnd, std::vector<CopyEnd>, std::greater<CopyEnd>> copies_;
  std::map<NodeId, Moment> running_;  // what device_ and copies_ have
  NodeId next_number_ = 0;
  size_t pending_ = 0;
};

}  // namespace scheduler::streams
