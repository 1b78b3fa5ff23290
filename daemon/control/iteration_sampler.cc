#include "daemon/control/iteration_sampler.h"

#include <algorithm>

namespace control {
namespace {

constexpr uint64_t kToldOneByOneMax = 8;  // of one reading; more become one event

uint64_t Load(const std::atomic<uint64_t>& word) { return word.load(std::memory_order_relaxed); }

TimeCounts Difference(const TimeCounts& now, const TimeCounts& before) {
  TimeCounts counts;
  for (size_t i = 0; i < counts.size(); ++i) counts[i] = now[i] - before[i];
  return counts;
}

}  // namespace

TimeCounts CountsOf(const ipc::IterationTimes& times) {
  TimeCounts counts;
  for (size_t i = 0; i < counts.size(); ++i) {
    counts[i] = times.times[i].load(std::memory_order_relaxed);
  }
  return counts;
}

const char* NameOf(ipc::WaitState wait) {
  switch (wait) {
    case ipc::WaitState::kTurn:
      return "its turn";
    case ipc::WaitState::kMemory:
      return "memory";
    case ipc::WaitState::kLane:
      return "a larger lane";
    case ipc::WaitState::kPaused:
      return "resume";
    case ipc::WaitState::kSwapped:
      return "its memory";
    default:
      return "";
  }
}

uint64_t QuantileUs(const TimeCounts& counts, double part) {
  uint64_t all = 0;
  for (const uint32_t count : counts) all += count;
  if (all == 0) return 0;
  double left = static_cast<double>(all) * part;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double here = counts[i];
    if (here == 0 || left > here) {
      left -= here;
      continue;
    }
    const uint64_t begin = ipc::BucketBegin(i);
    const uint64_t width = i + 1 < counts.size() ? ipc::BucketBegin(i + 1) - begin : 0;
    return begin + static_cast<uint64_t>(static_cast<double>(width) * left / here);
  }
  return ipc::BucketBegin(counts.size() - 1);
}

void IterationSampler::Tell(uint64_t session, uint64_t job, const ipc::IterationTimes& times,
                            int64_t now_us, Watched* watched, Journal* journal) const {
  const uint64_t count = times.count.load(std::memory_order_acquire);
  const uint64_t fresh = count - watched->told;
  const uint64_t total_us = Load(times.total_us);
  const auto add = [&](uint64_t iterations, uint64_t end_us, uint64_t took_us) {
    const int64_t end = std::clamp(static_cast<int64_t>(end_us), watched->told_end_us, now_us);
    const uint64_t room = static_cast<uint64_t>(end - watched->told_end_us);
    journal->Add({.kind = EventKind::kIterations,
                  .at_us = end,
                  .session = session,
                  .job = job,
                  .count = iterations,
                  .took_us = static_cast<int64_t>(std::min(room, took_us))});
    watched->told_end_us = end;
  };
  const size_t last = static_cast<size_t>((count - 1) % ipc::kRecentIterations);
  if (fresh > kToldOneByOneMax) {
    const uint64_t end = Load(times.recent[last].end_us);
    // The sum of their times. The time between two iterations was a wait.
    add(fresh, end, total_us - watched->told_total_us);
  } else {
    for (uint64_t number = watched->told; number != count; ++number) {
      const size_t index = static_cast<size_t>(number % ipc::kRecentIterations);
      add(1, Load(times.recent[index].end_us), Load(times.recent[index].took_us));
    }
  }
  watched->told = count;
  watched->told_total_us = total_us;
}

bool IterationSampler::Sample(uint64_t session, uint64_t job, const ipc::IterationTimes& times,
                              int64_t now_us, Journal* journal) {
  const bool is_new = watched_.count(session) == 0;
  Watched& watched = watched_[session];
  const uint64_t count = times.count.load(std::memory_order_acquire);
  if (is_new) {
    watched.told = count;  // an adopted session's earlier iterations are not ours to tell
    watched.told_end_us = now_us;
    watched.told_total_us = Load(times.total_us);
    watched.before = watched.since = {now_us, count, CountsOf(times)};
  }
  if (now_us - watched.since.at_us >= kWindowUs) {
    watched.before = watched.since;
    watched.since = {now_us, count, CountsOf(times)};
  }
  if (count < watched.told) watched.told = count;
  if (count == watched.told) return false;
  Tell(session, job, times, now_us, &watched, journal);
  return true;
}

void IterationSampler::SampleWait(uint64_t session, uint64_t job, const ipc::Progress& progress,
                                  int64_t now_us, Journal* journal) {
  const std::map<uint64_t, Watched>::iterator found = watched_.find(session);
  if (found == watched_.end()) return;
  Watched& watched = found->second;
  const ipc::WaitState wait = progress.wait.load(std::memory_order_acquire);
  const int64_t since_us = static_cast<int64_t>(Load(progress.wait_since_us));
  if (wait == watched.wait) return;
  const int64_t begin_us = std::clamp(since_us, watched.wait_since_us, now_us);
  const bool follows = *NameOf(wait) != '\0';
  if (*NameOf(watched.wait) != '\0') {
    const int64_t end_us = follows ? begin_us : now_us;
    journal->Add({.kind = EventKind::kWaitEnd,
                  .at_us = end_us,
                  .session = session,
                  .job = job,
                  .took_us = end_us - watched.wait_since_us});
    watched.wait_since_us = end_us;
  }
  watched.wait = wait;
  if (!follows) return;
  watched.wait_since_us = begin_us;
  journal->Add({.kind = EventKind::kWaitBegin, .at_us = begin_us, .session = session, .job = job},
               NameOf(wait));
}

Figures IterationSampler::Of(uint64_t session, const ipc::IterationTimes& times,
                             int64_t now_us) const {
  Figures figures;
  figures.iterations = times.count.load(std::memory_order_acquire);
  figures.waited_us = Load(times.waited_us);
  figures.switches = Load(times.switches);
  figures.total_us = Load(times.total_us);
  const TimeCounts all = CountsOf(times);
  TimeCounts late = all;
  const std::map<uint64_t, Watched>::const_iterator found = watched_.find(session);
  if (found != watched_.end()) {
    const Reading& before = found->second.before;
    const double seconds = static_cast<double>(std::max<int64_t>(now_us - before.at_us, 1)) / 1e6;
    if (figures.iterations >= before.count) {
      figures.per_second = static_cast<double>(figures.iterations - before.count) / seconds;
    }
    late = Difference(all, before.times);
    if (std::all_of(late.begin(), late.end(), [](uint32_t count) { return count == 0; })) {
      late = all;
    }
  }
  figures.p50_us = QuantileUs(late, 0.5);
  figures.p99_us = QuantileUs(late, 0.99);
  return figures;
}

}  // namespace control
