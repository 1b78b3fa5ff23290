#include "cli/graph/launch_counts.h"

namespace graph {

void LaunchCounts::Add(const Record& record) {
  const SentCall* const call = std::get_if<SentCall>(&record.what);
  if (call == nullptr || call->op != ipc::Op::Launch) return;
  Launches& launches = by_kernel_[{call->image, call->kernel}];
  ++launches.count;
  if (const auto time = times_.find(record.number); time != times_.end()) {
    launches.time_ns += time->second;
    times_.erase(time);
    return;
  }
  if (untimed_.size() >= kOpenMax) untimed_.erase(untimed_.begin());
  untimed_[record.number] = &launches;
}

void LaunchCounts::AddTime(uint32_t number, int64_t time_ns) {
  if (const auto launch = untimed_.find(number); launch != untimed_.end()) {
    launch->second->time_ns += time_ns;
    untimed_.erase(launch);
    return;
  }
  if (times_.size() >= kOpenMax) times_.erase(times_.begin());
  times_[number] = time_ns;
}

}  // namespace graph
