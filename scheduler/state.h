// All that decisions rest on: limits, users, devices, lanes, sessions, gangs. Readable by everyone,
// written by OnEvent alone.
//
// Every index (who waits in a lane, who wants memory, who may be swapped out) is kept in order as
// events come, so a decision costs O(log sessions + lanes of one device), and lanes of one device
// are bounded. Safety condition (Salus, equation 2.1), which no action breaks:
//   committed persistent + sum of lanes + overhead + reserve <= capacity
// on each device, where committed is what is resident or promised. A device that is told to have
// less than is committed gives no more memory until it fits again. Thread safety: none; one thread.
#pragma once

#include <cassert>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "scheduler/event.h"

namespace scheduler {

class Policy;
struct Session;

constexpr int64_t kUnlimited = int64_t{1} << 60;

struct Limits {
  unsigned sessions_max = 0;
  unsigned lanes_max = 16;    // per device
  int64_t slice_us = 20'000;  // of time shared by policies that share time
  // Where promised, nobody who could run if it had its memory waits longer before it is next: then
  // those who have waited for longer, a slice each, and whoever holds what it needs come before it.
  int64_t starvation_us = 600'000'000;
  int64_t swap_slice_us = 2'000'000;      // memory stays at least this long before it makes room
  int64_t aging_us = 30'000'000;          // waiting this long is worth one priority class
  int64_t iteration_max_us = 10'000'000;  // past a Revoke, before Report
  int64_t swap_bytes = kUnlimited;        // host memory for what is swapped out
  // No session gets anywhere for so long, and none can leave the device: a request fails.
  int64_t standstill_us = 2'000'000;
};

enum class Phase { kQueued, kAdmitted, kEnding };
enum class Need { kNone, kPersistent, kLane };

// Orders sessions in an index: smaller first. The rank is the policy's, or a time.
struct Key {
  int64_t rank = 0;
  uint64_t arrival = 0;
  SessionId session = 0;
  bool operator<(const Key& other) const {
    return std::tie(rank, arrival) < std::tie(other.rank, other.arrival);
  }
};

// Sessions in order. A decision looks at dozens of those who want memory or hold it: it finds each
// at once.
using Index = std::map<Key, Session*>;

struct Session {
  SessionArrived about;
  SessionId id = 0;
  Phase phase = Phase::kQueued;
  uint64_t arrival = 0;  // position in the order of arrival
  int64_t arrived_us = 0;

  // --- memory
  int64_t persistent_bytes = 0;  // its own, wherever it is
  int64_t promised_bytes = 0;    // kept free for it: an estimate, until learned
  int64_t charged_bytes = 0;     // what of it counts on the device now
  int64_t coming_bytes = 0;      // of these, what is on its way to the host
  int64_t ephemeral_bytes = 0;   // of one iteration, as last asked for
  int64_t answered_bytes = 0;    // the same, without what a session asks for that is on its way in
  bool uses_lane = false;        // it asked for it: ephemeral_bytes are no mere estimate
  LaneId lane = 0;               // 0: queued or swapped out
  Place place;
  int64_t resident_us = 0;       // since when its residence is what it is
  int64_t moved_in_us = 0;       // how long its last way back from the host took
  int64_t busy_before_us = 0;    // busy_us when it came back
  int64_t saved_lane_bytes = 0;  // of its lane, which it took along: it may ask for more meanwhile
  LaneId reserving = 0;          // the lane that is to become free for it, being so
  int64_t swap_failed_us = -kUnlimited;
  Need need = Need::kNone;
  int64_t need_bytes = 0;
  int64_t need_us = 0;
  bool need_comes = false;  // it is counted with what is on its way in: answered on arrival

  // --- work
  bool runnable = false;
  Pause pause = Pause::kNone;
  bool granted = false;  // holds its lane and may run
  bool inside = false;   // holds live ephemeral memory: it came to no boundary since
  bool revoked = false;
  bool reported = false;
  int64_t granted_us = 0;   // the last grant
  int64_t promised_us = 0;  // until then it keeps a turn that it got for having waited so long
  int64_t revoked_us = 0;
  int64_t waiting_us = 0;       // since when it could run and does not
  int64_t waited_since_us = 0;  // the same, before the last grant

  // --- where the indexes hold it; session == 0: not there
  Key turn;       // Lane::waiting; a gang's member: only a mark
  Key age;        // Lane::by_age
  Key claim;      // Device::claims
  Key claim_age;  // Device::oldest_claims
  Key resident;   // Device::lru

  // --- service
  int64_t iterations_done = 0;
  int64_t busy_us = 0;
  int64_t virtual_us = 0;      // busy time over weight, from where its lane was when it came
  int64_t iteration_us = 0;    // moving average; 0: not seen
  int64_t reference_us = 0;    // an iteration beside the fewest lanes it was seen beside
  size_t reference_lanes = 0;  // these, its own among them; 0: not seen
  int64_t progress_us = 0;     // the last report

  bool gang() const { return about.gang_size >= 2; }
  bool paused() const { return pause != Pause::kNone; }
  bool evicted() const { return pause == Pause::kEvicted || pause == Pause::kDismissed; }
  // Its place in Device::needs while it waits for memory there: the first who came is the first.
  Key need_key() const { return {static_cast<int64_t>(arrival), arrival, id}; }
  // REQUIRES: Legal(place, to).
  void Move(Place to) {
    assert(Legal(place, to));
    place = to;
  }
  // What it asked for of its lane; what was only estimated is nobody's claim.
  int64_t asked_lane_bytes() const { return uses_lane ? ephemeral_bytes : 0; }
  // On the host, or on its way there or back.
  int64_t host_bytes() const {
    return place.residence == Residence::kDevice ? 0 : persistent_bytes + saved_lane_bytes;
  }
  bool on_device() const { return phase != Phase::kQueued && place.residence != Residence::kHost; }
  // Could run if its lane and the policy let it.
  bool eligible() const {
    return phase == Phase::kAdmitted && place.residence == Residence::kDevice &&
           need == Need::kNone && runnable && !paused() && lane != 0 && !granted;
  }
  // With its lane and work it holds live ephemeral memory, as far as anybody knows.
  bool enters() const { return granted && runnable && uses_lane && ephemeral_bytes > 0; }
  // Holds its lane and gets somewhere: the device is not idle on its account.
  bool progressing() const {
    return granted && phase == Phase::kAdmitted && need == Need::kNone &&
           place.residence == Residence::kDevice && (runnable || inside);
  }
};

struct Lane {
  LaneId id = 0;
  uint32_t user = 0;
  uint32_t device = 0;
  int64_t bytes = 0;
  int64_t shrinking_to = -1;  // a ResizeLane is on its way; -1: none
  int64_t coming_bytes = 0;   // what that gives back, or what closing will
  bool closing = false;       // nobody new: it is about to shrink, or to go into merge_into
  LaneId merge_into = 0;
  Session* holder = nullptr;
  SessionId reserved = 0;  // next is this one, whatever the policy says
  int64_t virtual_floor_us = 0;
  std::set<SessionId> members;
  std::multiset<int64_t> needs;      // their ephemeral_bytes
  std::set<Key> waiting;             // who could run at once, by rank
  std::set<Key> by_age;              // the same, by waiting_us
  bool handing_on = false;           // its revoked holder hands it to `published`
  std::vector<SessionId> published;  // the successors, as last told
  bool told = false;                 // since this holder has it: a list before may reach it late

  int64_t needed_bytes() const { return needs.empty() ? 0 : *needs.rbegin(); }
};

// How fast sessions ran, as a share of their speed alone, while so many lanes ran at once.
struct Speed {
  double share = 0;
  int64_t at_us = 0;  // 0: not measured
};

struct Device {
  uint32_t id = 0;
  int64_t capacity_bytes = kUnlimited;
  int64_t overhead_bytes = 0;
  int64_t reserve_bytes = 0;
  int64_t charged_bytes = 0;  // by its sessions
  int64_t lanes_bytes = 0;
  int64_t coming_bytes = 0;  // of these, what is on its way out
  int64_t kept_bytes = 0;    // room being made for the oldest request: nobody comes into it
  bool lost = false;
  unsigned swapping = 0;
  SessionId reserves = 0;        // the claim for which a lane is kept free
  unsigned running = 0;          // lanes whose holders progressed when it was last looked at
  int64_t running_since_us = 0;  // since when they have been so many
  std::vector<Lane*> lanes;      // oldest first
  Index claims;                  // queued, and swapped out with work to do: by rank
  Index oldest_claims;           // the same, by waiting_us
  std::set<Key> needs;           // blocked in a request: by arrival
  Index lru;                 // with memory here, not granted: who came or ran longest ago is first
  Index youngest;            // the same, youngest first
  std::vector<Speed> speed;  // by lanes that ran at once
  int64_t tried_us = 0;      // when it became longer
  int64_t timer_us = kUnlimited;
  int64_t retry_us = 0;  // when a swap that failed is tried again
  int64_t refuse_us =
      kUnlimited;  // when a standstill will have lasted long enough to fail somebody

  int64_t free_bytes() const {
    return capacity_bytes - overhead_bytes - reserve_bytes - charged_bytes - lanes_bytes;
  }
};

struct User {
  int64_t weight = 100;
  int64_t memory_bytes = 0;
  uint32_t sessions_max = 0;
  int64_t virtual_us = 0;  // service of all its sessions over weight
  uint32_t admitted = 0;
  uint32_t active = 0;                     // sessions that run or could
  std::map<uint32_t, int64_t> used_bytes;  // by device
  int64_t UsedOn(uint32_t device) const {
    const std::map<uint32_t, int64_t>::const_iterator used = used_bytes.find(device);
    return used == used_bytes.end() ? 0 : used->second;
  }
};

struct Gang {
  uint64_t job = 0;
  std::set<SessionId> members;
  unsigned size = 0;   // ranks that the job has
  unsigned ended = 0;  // of these; the others go on without them
  unsigned ready = 0;  // members that could run at once
  Key key;             // in State::ready_gangs; session == 0: not there

  // How many members must be ready: a rank may end its work before its mates do.
  unsigned needed() const { return size > ended ? size - ended : 1; }
};

struct State {
  // REQUIRES: `policy` names one (FindPolicy).
  explicit State(const std::string& policy = "fifo", const Limits& limits = Limits());
  State(const State&) = delete;  // its parts point at each other
  State& operator=(const State&) = delete;

  Limits limits;
  const Policy* policy;
  std::unordered_map<SessionId, Session> sessions;
  std::unordered_map<LaneId, Lane> lanes;
  std::map<uint32_t, Device> devices;
  std::map<uint32_t, User> users;
  std::map<uint64_t, Gang> gangs;  // by job
  std::set<Key> ready_gangs;       // session: the job
  uint64_t assembling = 0;         // the job whose gang is being given its lanes; 0: none
  uint64_t arrivals = 0;
  LaneId lanes_made = 0;
  unsigned queued = 0;
  unsigned admitted = 0;  // whoever holds a place: admitted and ending
  unsigned ending = 0;
  int64_t swapped_bytes = 0;
  int64_t user_floor_us = 0;  // virtual time at which a user begins

  const Session* Find(SessionId session) const;
};

}  // namespace scheduler
