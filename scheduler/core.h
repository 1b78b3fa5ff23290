// The parts of OnEvent, for scheduler/ alone: memory, lanes, turns, and what one event carries
// through them. Each part keeps the indexes of state.h in step with what it changes.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "scheduler/policy.h"
#include "scheduler/state.h"

namespace scheduler {

// Numbers of devices, each once, in order. They are few: as nodes of a std::set they would cost an
// event more than what is done with them.
class DeviceSet {
 public:
  void insert(uint32_t device) {
    const std::vector<uint32_t>::iterator at = Find(device);
    if (at == numbers_.end() || *at != device) numbers_.insert(at, device);
  }
  void erase(uint32_t device) {
    const std::vector<uint32_t>::iterator at = Find(device);
    if (at != numbers_.end() && *at == device) numbers_.erase(at);
  }
  bool empty() const { return numbers_.empty(); }
  std::vector<uint32_t>::const_iterator begin() const { return numbers_.begin(); }
  std::vector<uint32_t>::const_iterator end() const { return numbers_.end(); }

 private:
  std::vector<uint32_t>::iterator Find(uint32_t device) {
    return std::lower_bound(numbers_.begin(), numbers_.end(), device);
  }

  std::vector<uint32_t> numbers_;
};

// One event's work. `devices` are looked at again when the event itself is dealt with.
struct Core {
  State* state = nullptr;
  int64_t now_us = 0;
  std::vector<Action> actions;
  DeviceSet devices;

  Session* Find(SessionId session);  // null: unknown
  Lane* LaneOf(LaneId lane);         // null: unknown
  Device* DeviceOf(const Session& session) { return &state->devices.at(session.about.device); }
  User* UserOf(const Session& session) { return &state->users[session.about.user]; }
};

// --- memory.cc: accounts and requests
// Brings the accounts and the indexes of memory in step with the session.
void Account(Core* core, Session* session);
void SetLaneBytes(Core* core, Lane* lane, int64_t bytes);
// Whether it may be let in as far as places go.
bool HasPlace(const State& state, const Session& session);
bool Fits(const State& state, const Session& session, int64_t bytes);
// Whether it could have `bytes` more if it were alone on its device; else why not.
bool AloneFits(const State& state, const Session& session, int64_t persistent, int64_t ephemeral,
               std::string* why);
void OnMemoryNeeded(Core* core, Session* session, int64_t bytes);
// The session has it at once, or not.
void OnMemoryWanted(Core* core, Session* session, int64_t bytes);
void OnLaneNeeded(Core* core, Session* session, int64_t bytes);
void Unblock(Core* core, Session* session);  // forgets what it asked for
void OnMoved(Core* core, Session* session, const SessionMoved& event);
// From now on what it has and asks for counts, not what earlier runs needed.
void ForgetEstimate(Core* core, Session* session);
// Serves whom memory has become free for, then makes room for the first who waits.
void ServeMemory(Core* core, Device* device);

// --- room.cc: making room
// What `session` needs free at least, with the lanes as they are.
int64_t LeastBytes(const State& state, const Session& session, int64_t persistent,
                   int64_t ephemeral);
// Begins what will free `bytes` for `session`: shrinks and merges lanes, swaps out. Does nothing
// while enough is on its way.
void MakeRoom(Core* core, Device* device, Session* session, int64_t bytes);
// Whether the host memory for what is swapped out has room for it.
bool SwapSpaceFits(const State& state, const Session& session);
// Everybody waits for everybody: the youngest gives way to `session`. If nobody can, a request
// fails, unless somebody goes on before `refuse_us`, or kUnlimited: before Limits::standstill_us.
void BreakWait(Core* core, Device* device, Session* session, int64_t refuse_us);

// --- swaps.cc
// Of who is evicted: its memory leaves as soon as it can.
void LeaveIfEvicted(Core* core, Session* session);
// Those whom a swap that failed has left here, once it is time to try again.
void RetryEvictions(Core* core, Device* device);
void BeginSwapOut(Core* core, Session* session);
// The same for who was told to before.
void AwaitSwapOut(Core* core, Session* session);
void OnSwapped(Core* core, Session* session, const Swapped& event);
// The claim of a session that waits for memory as a whole: to be admitted, or to come back.
void Claim(Core* core, Session* session);
void Unclaim(Core* core, Session* session);
void Unreserve(Core* core, Session* session);  // no lane is kept free for it any more

// --- lanes.cc
struct LaneChoice {
  enum Kind { kNone, kNew, kJoin, kGrow } kind = kNone;
  LaneId lane = 0;
  int64_t bytes = 0;  // of the lane, afterwards
};
// Algorithm 2.1, for a session that brings `persistent` bytes and needs `ephemeral`.
LaneChoice FindLane(const State& state, const Session& session, int64_t persistent,
                    int64_t ephemeral);
// `answer`: to LaneNeeded. The session is listed anew.
void TakeLane(Core* core, Session* session, const LaneChoice& choice, int64_t ephemeral,
              bool answer);
// A new one of the session's user, on its device, without members.
Lane* MakeLane(Core* core, LaneId id, const Session& session);
void LeaveLane(Core* core, Session* session);
void GrowLane(Core* core, Lane* lane, int64_t bytes);
void SetEphemeral(Core* core, Session* session, int64_t bytes);
// Whether the lane's holder is stuck in it, so that the lane can neither shrink nor merge now.
bool HolderStays(const Lane& lane);
// The lane closes no more: its holder stays. Others must not count on what closing would free.
void KeepLane(Core* core, Lane* lane);
// Begins to free what nobody of the lane needs, when nobody holds it; else closes it first.
void ShrinkLane(Core* core, Lane* lane);
void MergeLane(Core* core, Lane* lane, Lane* into);
// A closing lane that nobody holds: shrinks or merges it now.
void FinishClosing(Core* core, Lane* lane);
// The same for a device's lanes: holders may have gone for good instead of switching.
void FinishClosings(Core* core, const Device& device);
void OnLaneShrunk(Core* core, const LaneShrunk& event);

// --- turns.cc
// Puts the session where it belongs: among those who wait for their lane, or not.
void List(Core* core, Session* session);
void Unlist(Core* core, Session* session);
void Hold(Core* core, Lane* lane, Session* session);  // granted from now on
void LetGo(Core* core, Session* session);             // not granted any more
// hand_on: to the next of this lane; else the lane becomes free.
void RevokeHolder(Core* core, Lane* lane, bool hand_on);
void OnSwitched(Core* core, const Switched& event);
// Grants and revokes what the policy wants now, and sets the device's timer.
void GiveTurns(Core* core, Device* device);
// The one who is next in this lane; null: nobody who could run.
Session* Head(Core* core, const Lane& lane);
// The session has waited, for the device or for memory, longer than is promised. A decision asks
// this of every session that it looks at, so the test that nearly always fails comes first.
inline bool Starves(const Core& core, const Session& waiting) {
  return waiting.waiting_us != 0 &&
         core.now_us - waiting.waiting_us >= core.state->limits.starvation_us &&
         core.state->policy->PromisesTurn();
}
bool ShouldPreempt(const Core& core, const Session& waiting, const Session& running);

// --- gangs.cc
void ListGangMember(Core* core, Session* session);
void JoinGang(State* state, const Session& session);
// Once all ranks of a job have come, a rank that ends is waited for no longer.
void LeaveGang(State* state, const Session& session);
void UnlistGangMember(Core* core, Session* session);
void GiveGangTurns(Core* core);

// --- service.cc
void OnProgress(Core* core, Session* session, const Progress& event);

// --- pauses.cc
void Stop(Core* core, Session* session, Pause pause);
// For a session whose memory has left the device, or can't leave. Other pauses stay. The caller
// lists the session again.
void EndDismissal(Session* session);
void On(Core* core, const Paused& event);
void On(Core* core, const Resumed& event);
void On(Core* core, const Dismissed& event);

// --- terms.cc
// A device that was never heard of has no bounds. To be looked at again.
Device* Touch(Core* core, uint32_t device);
void On(Core* core, const TermsChanged& event);
void On(Core* core, const SessionPlaced& event);

}  // namespace scheduler
