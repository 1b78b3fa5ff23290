// A session's thread in a simulated worker: the real gate and the real lane table, and a model of
// what daemon/worker does between them (session_gate.cc, session_memory.cc, session_move.cc), in
// the same order and under the same conditions. Thread safety: one thread.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "daemon/worker/gate.h"
#include "daemon/worker/lanes.h"
#include "daemon/worker/session.h"
#include "scheduler/place.h"
#include "tests/harness/task.h"
#include "tests/protocol/scene.h"

namespace protocol {

// Where a slot's addresses begin.
inline CUdeviceptr SlotAddress(uint32_t slot) {
  return ipc::limits::kSlotBase + slot * ipc::limits::kSlotBytes;
}

// Which lane a session is to be in, as it was told, and how much of it is its own.
struct LaneWord {
  uint64_t told = 0;
  uint64_t bytes = 0;     // 0: it uses none
  uint64_t answered = 0;  // granted, and about to be its: the next daemon counts that as well
  bool away = false;      // its memory is on the host
  bool saved = false;     // and what lives in its lane
  uint64_t when_back = 0;
  bool uses() const { return bytes != 0; }
};

// Memory of its own, which lies at the same addresses wherever it is served.
class SimRanges {
 public:
  SimRanges(const worker::Environment* environment, Program* program,
            const ipc::control::SessionRecord& record);
  // An error of the keeper, and nothing is there.
  CUresult Map(uint64_t address, uint64_t bytes);
  uint64_t Unmap(uint64_t address);  // returns the bytes
  void UnmapAll();
  void DropAll();      // they stay the session's
  CUresult Restore();  // as an earlier worker left them
  CUresult SwapIn();   // all of the program's swap file, or nothing
  uint64_t bytes() const { return bytes_; }
  const std::map<uint64_t, worker::Extent>& ranges() const { return ranges_; }
  CUdeviceptr base() const { return base_; }

 private:
  const worker::Environment& environment_;
  Program* const program_;
  const uint64_t session_;
  const CUdeviceptr base_;
  std::map<uint64_t, worker::Extent> ranges_;  // by address
  uint64_t bytes_ = 0;
};

class SimSession {
 public:
  using Answer = std::variant<ipc::control::AssignLane, ipc::control::MemoryAnswer>;

  // `tags`: what lies in each extent, to see whether somebody else wrote there.
  SimSession(Scene* scene, const worker::Environment* environment,
             const ipc::control::SessionRecord& record, Program* program,
             std::map<uint64_t, uint64_t>* tags);
  ~SimSession();
  SimSession(const SimSession&) = delete;

  // Takes over what another worker has left. False: some of it is gone.
  bool Restore();
  void Step();              // its thread, until it would sleep
  bool FinishDeviceWork();  // the device completes an operation; false: there is none
  bool ended() const { return ended_; }
  bool released() const { return released_; }
  uint64_t id() const { return id_; }
  Program* program() const { return program_; }

  void Stop() { stop_ = true; }
  void Release() { release_ = true; }
  void Obey(const worker::Decision& decision);
  worker::SessionSnapshot Snapshot() const;

  // For invariants.
  bool inside() const { return inside_; }
  uint64_t lane() const { return member_.lane(); }
  bool busy() const { return in_flight_ != 0 || undone_; }
  bool mid_iteration() const { return live_tag_ != 0; }
  std::string Describe() const;

 private:
  using Task = harness::Task<void>;
  template <class T>
  using Get = harness::Task<T>;

  // --- sim_session.cc: the loop and the gate
  bool Alive() const { return !stop_; }
  Task Run();
  Get<bool> PassGate();
  Get<bool> TryEnterLane();
  Task Park();
  Task Serve(Op op);
  void OnSilence();
  void PublishQuiet();
  bool IsItsTurn() const;
  bool HasItsLane() const { return !lane_.uses() || inside_; }
  bool AwaitsTurn(const Op& op) const;
  bool LaneIsEmpty() const;
  bool MayLeave();
  void LeaveLane();
  void NoteDeviceDone();
  void NoteHeld(bool boundary);
  void Work(const Op& op);
  void Boundary();
  Task End();
  void LeaveToSuccessor();

  // --- sim_session_memory.cc
  bool RunCommands();
  CUresult EnterLane();
  CUresult EnterGrantedLane();
  void ExitLane();
  void ForsakeLane();
  CUresult ChangeLane(uint64_t lane);
  // Named, because GCC 12 destroys a temporary that a coroutine awaits twice.
  using Attempt = std::function<CUresult()>;
  Get<CUresult> WhenThereIsRoom(const Attempt& attempt, bool undecided);
  template <class AnswerType>
  Get<std::optional<AnswerType>> Ask(ipc::control::WorkerToDaemon question);
  template <class AnswerType>
  std::optional<AnswerType> TakeAnswer();
  template <class AnswerType>
  void DropAnswers();  // of a daemon that is no more
  Get<CUresult> Allocate(uint64_t bytes);
  void FreeRange();
  Get<CUresult> GrowInLane(uint64_t bytes);
  Get<CUresult> TryGrowInLane(uint64_t bytes);
  Task GiveLaneBack();
  void DoSwap(bool out, bool with_lane);
  bool SwapOut(bool with_lane);
  uint32_t SwapIn(bool with_lane);

  Scene* const scene_;
  const worker::Environment& environment_;
  const uint64_t id_;
  const CUdeviceptr base_;
  Program* const program_;
  std::map<uint64_t, uint64_t>* const tags_;
  std::shared_ptr<worker::JobMemory> job_ = std::make_shared<worker::JobMemory>();
  worker::LaneMember member_;
  std::unique_ptr<worker::Gate> gate_;
  SimRanges ranges_;
  LaneWord lane_;
  const Attempt enter_ = [this] { return EnterGrantedLane(); };
  harness::Turns turns_;
  Task thread_;
  std::deque<std::function<void()>> commands_;
  std::deque<Answer> answers_;
  uint64_t asked_bytes_ = 0;   // granted by lanewayd
  uint64_t live_tag_ = 0;      // of what lives in its lane; 0: nothing
  int64_t held_since_us_ = 0;  // 0: no work since the last boundary
  int in_flight_ = 0;          // operations on the device
  bool undone_ = false;        // it has left, and the device has yet to finish
  bool inside_ = false;
  bool at_boundary_ = true;
  bool going_out_ = false;
  bool coming_in_ = false;
  bool takes_memory_ = false;
  bool stop_ = false;
  bool release_ = false;
  bool released_ = false;
  bool ended_ = false;
};

}  // namespace protocol
