// A session's thread in a simulated worker: a model of daemon/worker/session_loop.cc and
// turn_wait.cc over the real parts that a session is made of (parking, requests, place of memory,
// lane), which wait where the real ones wait. Thread safety: one thread.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "daemon/worker/memory_place.h"
#include "daemon/worker/parking.h"
#include "daemon/worker/session.h"
#include "tests/harness/task.h"
#include "tests/protocol/scene.h"
#include "tests/protocol/sim_lane.h"
#include "tests/protocol/sim_ranges.h"
#include "tests/protocol/sim_requests.h"

namespace protocol {

class SimSession {
 public:
  // `tags`: what lies in each extent, to see whether another session wrote there.
  SimSession(Scene* scene, const worker::Environment* environment,
             const ipc::control::SessionRecord& record, Program* program,
             std::map<uint64_t, uint64_t>* tags);
  SimSession(const SimSession&) = delete;

  // Takes over what another worker has left. False: some of it is gone.
  bool Restore();
  void Step();  // its thread, until it would sleep
  bool ended() const { return ended_; }
  bool released() const { return released_; }
  Program* program() const { return program_; }
  SimLane& lane() { return lane_; }
  const SimLane& lane() const { return lane_; }

  void Stop() { stop_ = true; }
  void Release() { release_ = true; }
  void Obey(const worker::Decision& decision);
  worker::SessionSnapshot Snapshot() const;
  std::string Describe() const;

 private:
  using Task = harness::Task<void>;
  template <class T>
  using Get = harness::Task<T>;

  // --- sim_session.cc: the loop
  bool Alive() const { return !stop_; }
  Task Run();
  Get<bool> PassGate();
  Get<bool> TryEnterLane();
  Task Park();
  Task Serve(Op op);
  void OnSilence();
  void PublishQuiet();
  bool AwaitsTurn(const Op& op) const;
  Task End();

  // --- sim_session_memory.cc
  Get<CUresult> Allocate(uint64_t bytes);
  void FreeRange();
  Get<CUresult> GrowInLane(uint64_t bytes);
  Get<SimRequests::Answer> AskForLane(uint64_t bytes, bool* told);
  Task WaitUntilQuiet();
  Task GiveLaneBack();
  void DoSwap(bool out, bool with_lane);
  bool SwapOut(bool with_lane);
  uint32_t SwapIn(bool with_lane);

  Scene* const scene_;
  const worker::Environment& environment_;
  const uint64_t id_;
  Program* const program_;
  const std::shared_ptr<const SessionFiles> files_;
  SimLane lane_;
  SimRanges ranges_;
  worker::MemoryPlace place_;
  worker::Parking parking_;
  harness::Turns turns_;
  SimRequests requests_;
  Task thread_;
  bool stop_ = false;
  bool release_ = false;
  bool released_ = false;
  bool ended_ = false;
};

}  // namespace protocol
