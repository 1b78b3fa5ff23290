#include "cli/sim/device_model.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>

namespace sim {
namespace {

constexpr int kRoundsMax = 100;
constexpr double kConverged = 1e-9;
constexpr double kReached = 1e-9;  // of an iteration: what doubles leave

}  // namespace

std::vector<Speed> SpeedsOf(const std::vector<Load>& loads) {
  const size_t count = loads.size();
  std::vector<double> present(count);  // probability that it is at the device
  std::vector<double> device(count);   // its time there per iteration, waiting included
  for (size_t i = 0; i < count; ++i) present[i] = loads[i].busy;
  for (int round = 0; round < kRoundsMax && count > 1; ++round) {
    double all = 0;
    double change = 0;
    for (const double value : present) all += value;
    for (size_t i = 0; i < count; ++i) {
      const double others = all - present[i];
      device[i] = loads[i].busy * (1 + loads[i].interference * others) * (1 + others);
    }
    for (size_t i = 0; i < count; ++i) {
      const double next = device[i] / (1 - loads[i].busy + device[i]);
      change = std::max(change, std::abs(next - present[i]));
      present[i] = next;
    }
    if (change < kConverged) break;
  }
  std::vector<Speed> speeds(count);
  if (count == 1) speeds[0] = {1, loads[0].busy};
  double use = 0;
  for (size_t i = 0; i < count && count > 1; ++i) {
    double all = 0;
    for (const double value : present) all += value;
    const double stretch = 1 + loads[i].interference * (all - present[i]);
    speeds[i].rate = 1 / (1 - loads[i].busy + device[i]);
    speeds[i].use = speeds[i].rate * loads[i].busy * stretch;
    use += speeds[i].use;
  }
  if (use > 1) {  // the approximation's error: at most a few per cent
    for (Speed& speed : speeds) {
      speed.rate /= use;
      speed.use /= use;
    }
  }
  return speeds;
}

void SharedDevice::Recompute() {
  std::vector<Load> loads;
  for (const Active& active : active_) loads.push_back(active.load);
  const std::vector<Speed> speeds = SpeedsOf(loads);
  for (size_t i = 0; i < active_.size(); ++i) active_[i].speed = speeds[i];
}

void SharedDevice::Start(const Active& active) {
  assert(Find(active.id) == nullptr && active.target > active.done);
  active_.push_back(active);
  Recompute();
}

double SharedDevice::Stop(uint64_t id) {
  for (size_t i = 0; i < active_.size(); ++i) {
    if (active_[i].id != id) continue;
    const double done = active_[i].done;
    active_.erase(active_.begin() + static_cast<ptrdiff_t>(i));
    Recompute();
    return done;
  }
  assert(false && "stops what does not run");
  return 0;
}

void SharedDevice::SetTarget(uint64_t id, double target) {
  for (Active& active : active_) {
    if (active.id == id) active.target = target;
  }
}

const SharedDevice::Active* SharedDevice::Find(uint64_t id) const {
  for (const Active& active : active_) {
    if (active.id == id) return &active;
  }
  return nullptr;
}

void SharedDevice::Advance(int64_t now_us) {
  assert(now_us >= now_us_);
  const double passed = static_cast<double>(now_us - now_us_);
  now_us_ = now_us;
  if (passed == 0) return;
  for (Active& active : active_) {
    active.done =
        std::min(active.target, active.done + passed * active.speed.rate / active.iteration_us);
    busy_us_ += passed * active.speed.use;
  }
  if (!active_.empty()) computing_us_ += passed;
}

int64_t SharedDevice::NextUs() const {
  int64_t next = kNever;
  for (const Active& active : active_) {
    const double wait =
        std::max(0.0, active.target - active.done) * active.iteration_us / active.speed.rate;
    next = std::min(next, now_us_ + static_cast<int64_t>(std::ceil(wait - kReached)));
  }
  return next;
}

uint64_t SharedDevice::Reached() {
  for (Active& active : active_) {
    if (active.target - active.done > kReached) continue;
    active.done = active.target;
    return active.id;
  }
  return 0;
}

}  // namespace sim
