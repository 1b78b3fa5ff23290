// Counts a session's iterations: how long each held the lane, how much work it had, and when the
// device ended it. Thread safety: the session's thread.
#pragma once

#include "daemon/worker/gate.h"
#include "daemon/worker/iteration_ends.h"
#include "daemon/worker/iteration_work.h"
#include "daemon/worker/session.h"
#include "ipc/iteration_clock.h"
#include "ipc/session_file.h"

namespace worker {

class Iterations {
 public:
  // All outlive this object.
  Iterations(const Environment& environment, ipc::SessionPage* page, ipc::Progress* progress)
      : progress_(*progress), ends_(environment, &page->iteration_times) {}
  Iterations(const Iterations&) = delete;

  // The session has its turn from now on, or no longer.
  void OnTurn() { clock_.Start(NowUs()); }
  void OnTurnEnds() { clock_.Stop(&progress_, NowUs()); }
  // A call that touches memory is about to be served.
  void OnWork() { work_.Add(); }
  // `last`: the stream of the iteration's last work; null: it had none.
  void OnBoundary(const ipc::BoundaryInfo& info, CUstream last) {
    work_.End();
    const int64_t began_us = clock_.began_us(), now_us = NowUs();
    const uint64_t held_us = clock_.EndIteration(info, &progress_, now_us);
    ends_.OnBoundary(last, {began_us, now_us, held_us});
  }

  // This iteration has had as much work as the one before.
  bool has_work_of_one() const { return work_.is_complete(); }
  // True when the program still iterates.
  bool expects_boundary() const { return clock_.Iterates(progress_); }

  // Counts the iterations that the device has ended meanwhile.
  void CountEnded() { ends_.CountEnded(); }
  // Counts the rest as ended. REQUIRES: the device is done, or failed.
  void Clear() { ends_.Clear(); }

 private:
  ipc::Progress& progress_;
  ipc::IterationClock clock_;
  IterationWork work_;
  IterationEnds ends_;
};

}  // namespace worker
