// Session, implemented: the session's thread, over the session's parts.
//
//   session_impl.cc      the loop, calls about the session itself, the end
//   session_gate.cc      the gate: when messages may be taken, switches, commands
//   call_handlers/       calls: decoding's door, and a handler for each part of the table
//
// Thread safety: as Session says. Driver callbacks reach DeviceCallbacks::Tasks alone.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "daemon/common/progress_map.h"
#include "daemon/worker/call_handlers/call_handlers.h"
#include "daemon/worker/client_bell.h"
#include "daemon/worker/device_callbacks.h"
#include "daemon/worker/gate.h"
#include "daemon/worker/holdings.h"
#include "daemon/worker/iterations.h"
#include "daemon/worker/lane_executor.h"
#include "daemon/worker/lane_membership.h"
#include "daemon/worker/memory_requests.h"
#include "daemon/worker/parking.h"
#include "daemon/worker/print_sink.h"
#include "daemon/worker/registered_file.h"
#include "daemon/worker/session.h"
#include "daemon/worker/session_handover.h"
#include "daemon/worker/session_life.h"
#include "daemon/worker/stream_drain.h"
#include "daemon/worker/swap_orders.h"
#include "daemon/worker/thread_courtesy.h"
#include "ipc/door.h"

namespace worker {

class SessionImpl final : public Session, public ipc::SessionCalls, private Quiesce {
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
  void Post(std::function<void()> command) override { parking_.Post(std::move(command)); }
  void Obey(const Decision& decision) override;

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
  bool MayLeave() override { return turn_.MayLeave(); }
  // --- the gate (session_gate.cc)
  // How long to look out for a message before sleeping.
  int64_t SpinUs() const;
  // Whether the next message may be taken; waits at the gate when it may not.
  bool PassGate();
  // Whether it is to be taken in the session's turn alone.
  bool AwaitsTurn(std::span<const std::byte> message) const;
  bool TryEnterLane();
  void AwaitLane();
  void Park();
  // The wait for a message ended without one.
  void OnSilence();
  bool MayCommand();
  static constexpr int64_t kPatienceUs = 5'000;  // silent for so long: idle
  static constexpr int64_t kUnquietUs = 1'000;   // nobody tells when a stream is done

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
  std::unique_ptr<std::byte[]> reply_;

  Iterations iterations_;
  LaneMembership lane_;
  LaneExecutor turn_;
  SwapOrders swaps_;
  bool busy_ = false;                  // it sends work, and does not only ask
  int64_t patience_us_ = kPatienceUs;  // how long to wait for a message before looking around
  int64_t unquiet_us_ = kUnquietUs;    // the same while the device is busy
  int64_t rested_us_ = 0;              // since when it has had no work
};

}  // namespace worker
