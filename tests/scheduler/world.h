// A daemon, its workers and their programs, as far as the scheduler can tell: performs actions,
// tells what follows from them late and in any order, and checks each action against what a worker
// or keeper would refuse. Driven by one random source: the same seed, the same events.
//
// Checks after every event: persistent memory and lanes, as a keeper would count them, fit into the
// device; a lane has one holder; grants take place at boundaries only (never while another holds
// the lane, never to one that is blocked, paused or swapped, never on a lost device); no device
// rests while somebody could run; for want of swap space nobody fails but after a standstill, and
// nobody who asks for its own lane again; users stay within their quotas; what is on the host is
// counted and fits into the swap space; under fifo nobody runs or comes in before an earlier one
// that could. A failed check throws std::logic_error. Thread safety: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "scheduler/scheduler.h"

namespace scheduler {

// Fails the test that runs a World: throws std::logic_error with `what`.
void Require(bool holds, const char* what);

struct Tenant {
  SessionId id = 0;
  uint32_t user = 0;
  uint32_t device = 0;
  uint64_t gang = 0;
  bool admitted = false;
  bool ending = false;
  bool runnable = false;
  bool paused = false;
  bool evicted = false;
  bool granted = false;
  bool revoked = false;
  bool inside = false;
  bool blocked = false;
  int64_t asked_bytes = 0;  // persistent; 0: a lane
  int64_t asked_lane_bytes = 0;
  bool resident = true;
  int swapping = 0;  // -1 out, 1 in
  bool lane_saved = false;
  int64_t persistent_bytes = 0;
  int64_t ephemeral_bytes = 0;
  LaneId lane = 0;
};

struct WorldLane {
  uint32_t user = 0;
  uint32_t device = 0;
  int64_t bytes = 0;
  int64_t shrinking_to = -1;
  SessionId holder = 0;
  std::vector<SessionId> successors;
};

class World {
 public:
  struct Options {
    std::string policy = "fifo";
    int tenants_max = 12;
    int devices = 2;
    int users = 2;
    int64_t capacity = 1000;
    bool gangs = true;
    bool quotas = true;
  };
  World(const Options& options, uint64_t seed);

  void Step();  // one random event
  // No tenant does anything more, and no time passes: what was begun ends. Fails when turns, sizes
  // of lanes or swaps go on for ever, each the cause of the next.
  void ComeToRest();
  // All tenants leave. Fails when anything is left of them in any account.
  void AllLeave();
  // Tells one event, performs what follows, checks.
  void Tell(const Event& event);

  const State& state() const { return state_; }
  uint64_t digest() const { return digest_; }  // of all actions so far
  std::string Describe() const;                // everybody, and why they wait
  uint64_t events() const { return events_; }

 private:
  uint64_t Random(uint64_t bound) { return random_() % bound; }
  Tenant* Any();
  void Arrive();
  void Leave(Tenant* tenant);
  void Work(Tenant* tenant);
  void Boundary(Tenant* tenant);
  void Ask(Tenant* tenant);
  bool FinishSomething();  // whether there was something
  void HandOver(LaneId id);
  void Move(Tenant* tenant);
  void Disturb(Tenant* tenant);

  void Perform(const Action& action);
  void Do(const Admit& action);
  void Do(const Queue& action);
  void Do(const Reject& action);
  void Do(const AssignLane& action);
  void Do(const ResizeLane& action);
  void Do(const Grant& action);
  void Do(const Revoke& action);
  void Do(const Successors& action);
  void Do(const SwapOut& action);
  void Do(const SwapIn& action);
  void Do(const GrantMemory& action);
  void Do(const RefuseMemory& action);
  void Do(const Wait& action);
  void Do(const Report& action);

  void RequireNobodyPassed(const Grant& action);
  Tenant* Get(SessionId id);
  WorldLane* GetLane(LaneId id);
  bool CanRun(const Tenant& tenant) const;
  void Check();
  void CheckDevice(uint32_t device);
  void CheckGangs();
  // --- world_checks.cc
  void CheckQuotas();
  void CheckSwapSpace();
  void CheckFifo();
  void RequireFirstToComeIn(const Tenant& admitted);
  void RequireRoomOnHost(const Tenant& going);
  bool FitsOnHost(const Tenant& going) const;
  void RequireNothingIsLeft();

  Options options_;
  std::mt19937_64 random_;
  State state_;
  int64_t now_us_ = 0;
  SessionId next_id_ = 1;
  std::map<SessionId, Tenant> tenants_;
  std::map<LaneId, WorldLane> lanes_;
  std::vector<int64_t> capacity_;
  std::map<uint32_t, int64_t> still_since_us_;  // of devices on which nobody gets anywhere
  uint64_t digest_ = 14695981039346656037u;
  uint64_t events_ = 0;
};

}  // namespace scheduler
