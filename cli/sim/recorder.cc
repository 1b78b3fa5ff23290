#include "cli/sim/recorder.h"

#include <cassert>

namespace sim {

void Recorder::Begin(size_t job, uint32_t lane, Doing doing, int64_t now_us, double iteration) {
  if (!wanted_) return;
  if (open_.size() <= job) open_.resize(job + 1);
  std::vector<Segment>& all = outcome_->segments;
  if (open_[job] != 0) {  // goes on where it was: one segment
    Segment& last = all[open_[job] - 1];
    if (last.lane == lane && last.doing == doing && last.end_us == now_us) return;
  }
  all.push_back({job, lane, doing, now_us, now_us, iteration, iteration});
  open_[job] = all.size();
}

void Recorder::End(size_t job, int64_t now_us, double iteration) {
  if (!wanted_) return;
  assert(job < open_.size() && open_[job] != 0);
  Segment& last = outcome_->segments[open_[job] - 1];
  last.end_us = now_us;
  last.end_iteration = iteration;
}

void Recorder::Memory(int64_t now_us, int64_t persistent_bytes, int64_t lane_bytes) {
  if (!wanted_) return;
  std::vector<MemoryPoint>& points = outcome_->memory;
  if (!points.empty() && points.back().time_us == now_us) points.pop_back();
  if (!points.empty() && points.back().persistent_bytes == persistent_bytes &&
      points.back().lane_bytes == lane_bytes) {
    return;
  }
  points.push_back({now_us, persistent_bytes, lane_bytes});
}

}  // namespace sim
