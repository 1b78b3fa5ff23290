// The iterations of sessions as figures for people: per second, and p50 and p99 of their times.
//
// Reads the words that workers count in (ipc/iteration_times.h) now and then, remembers enough of
// earlier readings to speak of the last 5 to 10 seconds, and adds new iterations to the journal.
// A client can write these words, too. Whatever it writes, times in the journal stay in order and
// within the time that has passed. Thread safety: one thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "daemon/control/journal.h"
#include "ipc/iteration_times.h"
#include "ipc/session_file.h"

namespace control {

using TimeCounts = std::array<uint32_t, ipc::kTimeBuckets>;

TimeCounts CountsOf(const ipc::IterationTimes& times);

// The time that the fraction `part` (0.5, 0.99) of the iterations does not exceed; 0 without any.
uint64_t QuantileUs(const TimeCounts& counts, double part);

// In a word or two. Empty for a value that is no wait: a client's page may hold any value.
const char* NameOf(ipc::WaitState wait);

struct Figures {
  uint64_t iterations = 0;  // since the session began
  double per_second = 0;    // of late
  uint64_t p50_us = 0;      // of late, or of all when there are none of late
  uint64_t p99_us = 0;
  uint64_t total_us = 0;  // of all
  uint64_t waited_us = 0;
  uint64_t switches = 0;
};

class IterationSampler {
 public:
  static constexpr int64_t kWindowUs = 5'000'000;

  // Takes a reading. True when there were new iterations.
  bool Sample(uint64_t session, uint64_t job, const ipc::IterationTimes& times, int64_t now_us,
              Journal* journal);
  // Tells the journal when a wait has begun or ended since the last look. One that is shorter than
  // the time between two looks may go unseen.
  void SampleWait(uint64_t session, uint64_t job, const ipc::Progress& progress, int64_t now_us,
                  Journal* journal);
  Figures Of(uint64_t session, const ipc::IterationTimes& times, int64_t now_us) const;
  void Forget(uint64_t session) { watched_.erase(session); }

 private:
  struct Reading {
    int64_t at_us = 0;
    uint64_t count = 0;
    TimeCounts times = {};
  };
  struct Watched {
    uint64_t told = 0;        // iterations that the journal has
    int64_t told_end_us = 0;  // when the last of them ended
    uint64_t told_total_us = 0;
    ipc::WaitState wait = ipc::WaitState::kNothing;
    int64_t wait_since_us = 0;
    Reading before;  // one to two windows ago; the session's begin at first
    Reading since;   // less than one window ago
  };
  void Tell(uint64_t session, uint64_t job, const ipc::IterationTimes& times, int64_t now_us,
            Watched* watched, Journal* journal) const;

  std::map<uint64_t, Watched> watched_;
};

}  // namespace control
