// Session, implemented: the session's thread, over the session's parts.
//
//   session_impl.cc      the loop, calls about the session itself, the end
//   session_gate.cc      the gate: when messages may be taken, switches, commands
//   session_memory.cc    what lanewayd decides about memory: growth, lanes, swaps
//   call_handlers/       calls: decoding's door, and a handler for each part of the table
//
// Thread safety: as Session says. Driver callbacks reach DeviceCallbacks::Tasks alone.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "daemon/common/progress_map.h"
#include "daemon/worker/assigned_lane.h"
#include "daemon/worker/call_handlers/call_handlers.h"
#include "daemon/worker/client_bell.h"
#include "daemon/worker/device_callbacks.h"
#include "daemon/worker/gate.h"
#include "daemon/worker/holdings.h"
#include "daemon/worker/iteration_ends.h"
#include "daemon/worker/lane_turns.h"
#include "daemon/worker/memory_place.h"
#include "daemon/worker/memory_requests.h"
#include "daemon/worker/parking.h"
#include "daemon/worker/print_sink.h"
#include "daemon/worker/registered_file.h"
#include "daemon/worker/session.h"
#include "daemon/worker/session_handover.h"
#include "daemon/worker/session_life.h"
#include "daemon/worker/session_memory.h"
#include "daemon/worker/stream_drain.h"
#include "daemon/worker/thread_courtesy.h"
#include "ipc/door.h"
#include "ipc/iteration_clock.h"

namespace worker {

class SessionImpl final : public Session,
                          public SessionMemory,
                          public ipc::SessionCalls,
                          private Quiesce {
 public:
  SessionImpl(SessionSetup setup, const Environment& environment);
  bool Reserve(std::string* error);
  SessionLife& life() { return life_; }
  CallHandlers& handlers() { return handlers_; }

  // worker::Session
  void Run() override;
  void Stop() override;
  void Release() override { handover_.Release(); }
  bool released() const override { return handover_.released(); }
  bool quiet() const override { return handover_.quiet(); }
  SessionSnapshot Snapshot() const override;
  void Post(std::function<void()> command) override;
  void Obey(const Decision& decision) override;

  // SessionMemory
  CUresult AskForMemory(uint64_t bytes) override;
  CUresult MapWithRoom(uint64_t bytes, const std::function<CUresult()>& map) override;
  void GiveMemoryBack(uint64_t bytes) override { requests_.GiveBack(bytes); }
  void FreeRange(CUdeviceptr address) override { requests_.FreeRange(address); }
  bool UsesLane() const override { return lane_.uses(); }
  CUresult GrowInLane(uint64_t bytes) override;
  CUresult GiveLaneBack() override;
  bool IsItsTurn() const override;

  // ipc::SessionCalls
  CUresult Ping(uint64_t token, uint64_t* echo) override;
  CUresult GetDeviceInfo(CUdevice device, ipc::DeviceInfo* info) override;
  CUresult ContextReset(CUdevice device) override;
  CUresult Boundary(const ipc::BoundaryInfo* info) override;

 private:
  void ServeMessage(std::span<const std::byte> message);
  void SendReply(const ipc::MessageHeader& request, size_t body_bytes);  // the body is in reply_
  static bool IsPoison(ipc::Op op, uint32_t status);
  void NoteFailure(ipc::Op op, uint32_t status, bool replied);
  void LoseForMalformed(uint16_t op_untrusted);
  // The door has refused an address of this call.
  void AfterBadAddress(ipc::Op op);
  // How long to wait for something: not long while a quiet point is due.
  int64_t Patience(int64_t patience_us) const;
  void End();
  void LeaveToSuccessor();
  // Quiesce
  bool PollFrees() override { return held_.frees.Poll(); }
  bool IsComplete() override;
  void SaveForSuccessor() override { handlers_.streams().SaveTimes(); }
  bool MayLeave() override;
  // --- the gate (session_gate.cc)
  // How long to look out for a message before sleeping.
  int64_t SpinUs() const;
  // Whether the next message may be taken; waits at the gate when it may not.
  bool PassGate();
  // Whether it is to be taken in the session's turn alone.
  bool AwaitsTurn(std::span<const std::byte> message) const;
  void AwaitLane();
  void Park();
  // The wait for a message ended without one.
  void OnSilence();
  LaneFacts LaneNow();
  // Takes the event with the facts of now, and leaves the lane when it is to.
  void OnLane(LaneEvent event);
  // What outlives its iteration and could not be taken out of the lane keeps the lane with it.
  bool PinsLane();
  void LeaveLane();
  void NoteStreamDone();
  bool MayCommand();                             // the device has nothing of the session
  static constexpr int64_t kPatienceUs = 5'000;  // silent for so long: idle
  static constexpr int64_t kUnquietUs = 1'000;   // nobody tells when a stream is done
  // --- the lane (session_memory.cc)
  // False: the session ends before its device work does, so its mappings must stay as they are.
  [[nodiscard]] bool WaitUntilQuiet();
  bool TryEnterLane();
  bool HasItsLane() const;
  CUresult EnterLane();
  // Unless the gate is closed, or open for a lane that it is yet to change to.
  CUresult EnterGrantedLane();
  void ExitLane();
  void ForsakeLane();  // out of it, and no longer its member
  // At a boundary where the device has finished: gives up what is kept in the lane for no block.
  void ReclaimLane();
  CUresult ChangeLane(uint64_t lane);
  CUresult JoinToldLane(uint64_t wanted);
  uint64_t LacksInLane(uint64_t wanted);
  void LeaveWhileWaiting();
  // Carries out an order of lanewayd, and answers it.
  void DoSwap(bool out, bool with_lane);
  absl::Status SwapOut(bool with_lane);
  CUresult SwapIn(bool with_lane);

  const Environment& environment_;
  const ipc::DriverTable& driver_;
  const uint64_t session_id_;
  common::ProgressMap progress_;
  RegisteredFile file_;
  ipc::Channel channel_;
  SessionLife life_;
  Parking parking_;
  SessionHandover handover_;
  ThreadCourtesy courtesy_;
  DeviceCallbacks callbacks_;
  ClientBell bell_;
  PrintSink prints_;
  Holdings held_;
  CallHandlers handlers_;
  MemoryRequests requests_;
  StreamDrain drain_;
  IterationEnds iteration_ends_;
  std::unique_ptr<std::byte[]> reply_;
  DeviceCallbacks::Task stream_done_;

  std::unique_ptr<Gate> gate_;  // null: none, everyone runs at once
  bool busy_ = false;           // it sends work, and does not only ask
  AssignedLane lane_;
  LaneState turn_;
  HandOver hand_over_;
  IterationWork work_;
  MemoryPlace place_;
  int64_t patience_us_ = kPatienceUs;  // how long to wait for a message before looking around
  int64_t unquiet_us_ = kUnquietUs;    // the same while the device is busy
  int64_t rested_us_ = 0;              // since when it has had no work
  ipc::IterationClock clock_;
};

}  // namespace worker
