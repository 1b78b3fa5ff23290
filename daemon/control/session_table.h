// The sessions that a daemon knows, from the hello to the end of the program. Thread safety: one
// thread.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/common/progress_map.h"
#include "daemon/common/session_fds.h"
#include "daemon/common/session_page.h"
#include "ipc/control.h"
#include "ipc/unique_fd.h"

namespace control {

enum class Phase {
  kQueued,     // the scheduler has not admitted it
  kWaiting,    // for a worker that is being started
  kAttaching,  // told to the worker
  kRunning,
  kMoving,    // between two workers; waits for the next
  kEntering,  // told to the worker that takes it over
  kEnding,    // the program is gone; the worker cleans up
  kLost,      // its worker is gone; listed until the program ends
};

const char* NameOf(Phase phase);

class SessionLink;
struct Session;
// The reason that no other worker can take the session over; empty: another worker can.
std::string ObstacleOf(const Session& session);
// True while work that the worker took from the session's ring is not complete on the device.
bool HasWorkInFlight(const Session& session);

struct Session {
  ipc::control::SessionRecord record;
  SessionLink* link = nullptr;  // the way to it; from Add() on
  Phase phase = Phase::kQueued;
  uint32_t worker = 0;    // from kAttaching on; 0: none, or the program is its own
  int attempts = 0;       // to attach it
  bool has_slot = false;  // record.slot is taken
  ipc::UniqueFd socket;   // the hello's connection; invalid when adopted or closed by the program
  common::SessionFds fds;
  uint32_t own_worker = 0;  // of a contained session, once that worker is started
  // The device memory that a program in-process claims, which ran before this lanewayd did.
  std::optional<uint64_t> claimed_bytes;
  bool faulted = false;  // it has ended its worker: no other worker takes it over
  int moves_failed = 0;  // in a row: workers that were lost while they took it over
  common::SessionPageMap page;
  common::ProgressMap progress;  // its worker's word

  uint64_t lane = 0;  // as the scheduler has assigned it; 0: not yet
  uint64_t lane_bytes = 0;
  std::optional<ipc::control::Swap> swap;  // asked of its worker, not yet answered
  bool on_several = false;                 // devices, as far as is known
  bool asks_lane = false;  // blocked in a request for its lane, not for persistent memory
  std::string refusal;     // the reason when its last request for memory failed; else empty
  // The part of the session's progress that the scheduler knows, and since when.
  uint64_t iterations_seen = 0;
  uint64_t held_us_seen = 0;
  int64_t progress_us = 0;
};

// True when a worker runs the session now. The session uses its lane there.
inline bool RunsInWorker(const Session& session) {
  return session.phase == Phase::kRunning && session.worker != 0;
}

class SessionTable {
 public:
  // A new number for a session; never one that was used before, by this daemon or an adopted one.
  uint64_t NewId() { return next_id_++; }
  // A session had the number.
  void NoteUsed(uint64_t id) { next_id_ = std::max(next_id_, id + 1); }

  // `link` outlives the session.
  Session* Add(ipc::control::SessionRecord record, SessionLink* link);
  // Null when there is none.
  Session* Find(uint64_t id);
  const Session* Find(uint64_t id) const;
  void Remove(uint64_t id);

  // Takes the lowest free slot. REQUIRES: one is free (the scheduler admits no more than there
  // are).
  void TakeSlot(Session* session);

  std::vector<uint64_t> Ids() const;
  // Sessions whose program runs and holds a worker or may still get one.
  size_t CountAlive() const;
  bool AnyAlive() const;
  std::map<uint64_t, Session>& all() { return sessions_; }
  const std::map<uint64_t, Session>& all() const { return sessions_; }

 private:
  std::map<uint64_t, Session> sessions_;
  uint64_t next_id_ = 1;
};

}  // namespace control
