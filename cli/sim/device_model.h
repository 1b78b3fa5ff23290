// How fast jobs go when they share the device.
//
// An iteration is host time (the gap) and device time. Alone, one follows the other. Together, the
// device is shared in equal parts among those who compute at the moment, and a gap is filled by
// whoever has work: a closed queueing network with one customer per lane, solved by the
// approximate mean value analysis of Bard and Schweitzer. Two jobs that compute 100 % of their time
// run at half speed each; the sum of the device's use never exceeds 1. On top, each further lane
// that computes at the same time stretches a job's device time by its interference. What the model
// leaves out: jobs that use only a part of the device's multiprocessors would overlap for free.
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace sim {

struct Load {
  double busy = 1;          // share of an iteration, alone, that the device computes
  double interference = 0;  // how much longer, as a share, for each other lane that computes
};

struct Speed {
  double rate = 1;  // iterations done in the time of one alone
  double use = 1;   // share of the device's time that is its
};

std::vector<Speed> SpeedsOf(const std::vector<Load>& loads);

// The jobs that are in an iteration now, and how far each is. Times in microseconds.
class SharedDevice {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  struct Active {
    uint64_t id = 0;
    Load load;
    double iteration_us = 0;
    double done = 0;    // iterations, with the part of the present one
    double target = 0;  // the boundary at which it is looked at again
    Speed speed;
  };

  // REQUIRES: id is not active, target > done, Advance(now) was called.
  void Start(const Active& active);
  // Its progress; done == target when that is (but for rounding to whole microseconds) reached.
  double Stop(uint64_t id);
  void SetTarget(uint64_t id, double target);

  const Active* Find(uint64_t id) const;
  const std::vector<Active>& active() const { return active_; }

  // REQUIRES: now >= the last Advance, now <= NextUs().
  void Advance(int64_t now_us);
  // When the next one reaches its target; kNever: nobody is active.
  int64_t NextUs() const;
  // Some id whose target is reached now; 0: none. Its done is exactly its target.
  uint64_t Reached();

  double busy_us() const { return busy_us_; }            // integral of the device's use
  double computing_us() const { return computing_us_; }  // time with anybody in an iteration

 private:
  void Recompute();

  std::vector<Active> active_;
  int64_t now_us_ = 0;
  double busy_us_ = 0;
  double computing_us_ = 0;
};

}  // namespace sim
