// When recorded events were reached, kept where the next worker of the session finds it.
//
// The driver's events end with their worker, and what they measured with them. At every quiet point
// the times of those recorded since are written into the session's file (daemon/common/swap_file.h)
// by the program's names; events of the next worker by these names then have them until they are
// recorded anew. Times are the device's, placed on CLOCK_MONOTONIC where a worker first measures:
// between events of one worker exact, between two workers' to some 0.1 ms. Thread safety: one
// session's thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "absl/container/flat_hash_map.h"
#include "daemon/common/swap_file.h"
#include "daemon/worker/session.h"
#include "ipc/handles.h"

namespace worker {

class EventTimes {
 public:
  // `file` is not taken over; -1, or one that can't be mapped: nothing is kept.
  EventTimes(const Environment& environment, int file);
  ~EventTimes();
  EventTimes(const EventTimes&) = delete;

  void OnBind(ipc::HandleId id, CUevent event);
  void OnRelease(ipc::HandleId id, CUevent event);
  void OnRecord(CUevent event) {
    if (!kept_.empty()) kept_.erase(event);
  }

  struct Recorded {
    ipc::HandleId id;
    CUevent event;
  };
  // REQUIRES: they are complete, and the device's.
  void Save(int device, std::span<const Recorded> events);
  // cuEventElapsedTime, also for events that another worker has recorded.
  CUresult Elapsed(float* milliseconds, CUevent start, CUevent end);
  // No event lives any more; `names`: nor will one by any of their names have their times.
  void Clear(bool names);

 private:
  struct Base {
    CUevent event = nullptr;
    double ms = 0;
  };

  common::EventTime* At(ipc::HandleId id) const;
  // A new base: now.
  CUresult Measure(int device);
  CUresult TimeOf(CUevent event, int device, double* ms);

  const Environment& environment_;
  common::EventTime* times_ = nullptr;
  std::array<Base, ipc::control::kDevicesMax> bases_;
  absl::flat_hash_map<CUevent, common::EventTime> kept_;  // by another worker
};

}  // namespace worker
