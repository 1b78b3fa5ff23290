// Session, implemented: the two interfaces that the codec calls, over the session's parts.
//
//   session_impl.cc      the loop, the door for names, marks
//   execute_memory.cc    allocation, pinned ranges, copies
//   execute_module.cc    images, modules, functions, launches
//   execute_stream.cc    streams, events, marks, host functions
//   execute_graph.cc     pieces of executable graphs
//   session_addresses.cc the door for addresses
//   ending.cc            the end: work that is waited for, what goes at once and what goes later
//   session_gate.cc      the gate: when messages may be taken, switches, commands
//   session_memory.cc    what lanewayd decides about memory: growth, lanes, swaps
//   session_loss.cc      whether the session is lost
//   session_move.cc      quiet points, leaving to another worker, taking over from one
//   execute_library.cc   what library handles need beyond the tables: streams, workspaces
//
// Thread safety: as Session says. Driver callbacks reach only OnCallback() and the sender's lock.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "daemon/common/progress_map.h"
#include "daemon/worker/arena.h"
#include "daemon/worker/assigned_lane.h"
#include "daemon/worker/deferred_frees.h"
#include "daemon/worker/event_times.h"
#include "daemon/worker/gate.h"
#include "daemon/worker/graph_piece.h"
#include "daemon/worker/handle_map.h"
#include "daemon/worker/iteration_ends.h"
#include "daemon/worker/module_state.h"
#include "daemon/worker/modules.h"
#include "daemon/worker/open_waits.h"
#include "daemon/worker/own_addresses.h"
#include "daemon/worker/pinned.h"
#include "daemon/worker/session.h"
#include "daemon/worker/streams.h"
#include "ipc/door.h"
#include "ipc/driver_table.h"
#include "ipc/iteration_clock.h"

namespace worker {

// True for errors after which CUDA allows nothing more in the process.
bool IsSticky(CUresult result);

class SessionImpl final : public Session,
                          public StreamOwner,
                          public ipc::Session,
                          public ipc::LanewayCalls {
 public:
  SessionImpl(SessionSetup setup, const Environment& environment);
  ~SessionImpl() override;
  bool Reserve(std::string* error);
  // Makes the context of a message's device current.
  void UseDevice(uint32_t header_context);
  // session_loss.cc
  bool Alive() const;
  // Its client is on the way from one worker to another, and puts its objects in order.
  bool Replays() const;

  // worker::Session
  void Run() override;
  void Stop() override;
  void Release() override;
  bool released() const override { return released_; }
  bool quiet() const override { return quiet_.load(); }
  SessionSnapshot Snapshot() const override;
  void Post(std::function<void()> command) override;
  void Obey(const Decision& decision) override;

  // StreamOwner
  uint64_t session_id() const override { return session_id_; }
  void Print(std::string_view text) override;

  // ipc::Session: the door
  bool Translate(ipc::HandleKind kind, ipc::HandleId id, void** driver_handle) override;
  bool MayName(ipc::HandleKind kind, ipc::HandleId id) override;
  void Bind(ipc::HandleKind kind, ipc::HandleId id, void* driver_handle) override;
  void Release(ipc::HandleKind kind, ipc::HandleId id) override;
  bool Accepts(uint64_t address, uint64_t bytes) override;
  bool AcceptsMatrix(uint64_t address, void* layout) override;
  bool UsePointerMode(ipc::HandleKind kind, void* driver_handle, bool device) override;
  std::span<std::byte> Scratch() override { return {scratch_.get(), ipc::kBodyBytesMax}; }

  // ipc::LanewayCalls: overriders, though a declaration by type cannot say so
#define CALL(fn, ...) ipc::laneway::fn fn;
#include "ipc/calls/laneway.inc"
#undef CALL

 private:
  struct BlasState {
    CUstream stream = nullptr;
    CUdeviceptr workspace = 0;
    bool device_scalars = false;
    bool captured = false;  // a call of it was, and may use the workspace
  };

  void ServeMessage(std::span<const std::byte> message);
  void SendReply(const ipc::MessageHeader& request, size_t body_bytes);  // the body is in reply_
  static bool IsPoison(ipc::Op op, uint32_t status);
  void NoteFailure(ipc::Op op, uint32_t status, bool replied);
  void LoseForMalformed(uint16_t op_untrusted);
  // The device would have faulted: the session ends with 700 and the sentence, and nobody else.
  void LoseForAddress(const std::string& sentence);
  // The door has refused an address of this call.
  void AfterBadAddress(ipc::Op op);
  void PublishModuleStates();
  // ending.cc
  void End();
  void ReleaseHeldStreams();
  void CutHeldStreams();
  void WaitForStreams();
  void ReleaseUntilDone();
  void DestroyObjects();
  void LetFileGo();
  // session_move.cc
  bool AwaitClient();
  void PublishQuiet();
  void SaveEventTimes();
  // How long to wait for something: not long while a quiet point is due.
  int64_t Patience(int64_t patience_us) const;
  bool TryLeave();
  void LeaveToSuccessor();
  // Makes an attempt again while it lacks memory and freed ranges are about to give some. When it
  // is at what nobody decided about: kAskAgain once somebody is there.
  CUresult WhenThereIsRoom(uint64_t bytes, const std::function<CUresult()>& attempt,
                           bool undecided = false);
  // Others hold the memory that is lacking: waits until there is some. False: nobody can wait.
  bool WaitForMemory(uint64_t bytes);

  // The session ends, for a reason of its own that the client is told of.
  void Lose(const char* text, CUresult code = CUDA_ERROR_MPS_RPC_FAILURE);

  // --- the gate (session_gate.cc)
  // Beside a software device: whether the session's thread, when a message wakes it, leaves the
  // processor to who has it. Any thread.
  void GiveWay(bool gives);
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
  // True where the lane may be another's: nothing of this session lies in it.
  bool MayLeave();
  // Nothing that the session still needs lies in its lane.
  bool LaneIsEmpty();
  // What outlives its iteration and could not be taken out of the lane keeps the lane with it.
  bool PinsLane();
  // The client waits for an iteration that is complete.
  bool WaitsAtTheEnd() const;
  void LeaveLane();
  // kDo follows when the device has done what is on the stream, or has failed. Streams that the
  // program destroys owe it still: a session ends after WaitForCallbacks alone.
  template <void (SessionImpl::*kDo)()>
  CUresult CallBackAfter(CUstream stream) {
    return AddCallback(stream, &SessionImpl::OnCallback<kDo>);
  }
  template <void (SessionImpl::*kDo)()>
  static void CUDA_CB OnCallback(CUstream, CUresult status, void* session) {
    SessionImpl* const self = static_cast<SessionImpl*>(session);
    self->NoteResult(status);
    (self->*kDo)();
    self->callbacks_.fetch_sub(1);  // the last access: it may end now
  }
  CUresult AddCallback(CUstream stream, CUstreamCallback callback);
  void NoteResult(CUresult status);
  void WaitForCallbacks();
  void NoteStreamDone();
  bool StreamsIdle();
  bool RunCommands();  // false: some must wait until the device has finished
  void Poke();
  // Tells what the session waits for, as long as it lives.
  class Waiting {
   public:
    Waiting(SessionImpl* session, ipc::WaitState reason);
    ~Waiting();
    Waiting(const Waiting&) = delete;

   private:
    SessionImpl& session_;
    const int64_t begin_us_;
  };
  static constexpr int64_t kPatienceUs = 5'000;  // silent for so long: idle
  static constexpr int64_t kUnquietUs = 1'000;   // nobody tells when a stream is done
  using LanewaydAnswer = std::variant<ipc::control::AssignLane, ipc::control::MemoryAnswer>;
  // Asks lanewayd and waits for its answer; nothing when nobody decides, or the session ends.
  template <class Answer>
  std::optional<Answer> Ask(ipc::WaitState reason, const ipc::control::WorkerToDaemon& question);
  template <class Answer>
  std::optional<Answer> TakeAnswer();
  void KeepAnswer(const LanewaydAnswer& answer);  // any thread
  // Asks for memory: again where a refusal counted what the program had freed while the device
  // still used it.
  template <class Answer>
  std::optional<Answer> AskForRoom(ipc::WaitState reason,
                                   const ipc::control::WorkerToDaemon& question);
  // Before persistent memory grows: waits until there is room, or fails the call. `undecided`, when
  // given: nobody was there to decide, and the keeper may not have so much.
  CUresult AskForMemory(uint64_t bytes, bool* undecided = nullptr);
  bool HasDaemon() const;
  // Instead of an attempt, see WhenThereIsRoom: the next lanewayd would count on what this session
  // waits for.
  static constexpr CUresult kAskAgain = CUDA_ERROR_NOT_READY;
  void GiveMemoryBack(uint64_t bytes);
  void FreeRange(CUdeviceptr address);
  void WaitForFrees();  // of what the program has freed, until the device has done with it

  // --- the lane (session_memory.cc)
  // False: the session ends before its device work does, so its mappings must stay as they are.
  [[nodiscard]] bool WaitUntilQuiet();
  bool TryEnterLane();
  bool HasItsLane() const;
  // What was granted to it has not been taken back, and it has not given it up.
  bool IsItsTurn() const;
  CUresult EnterLane();
  // Unless the gate is closed, or open for a lane that it is yet to change to.
  CUresult EnterGrantedLane();
  void ExitLane();
  void ForsakeLane();  // out of it, and no longer its member
  // At a boundary where the device has finished: gives up what is kept in the lane for no block.
  void ReclaimLane();
  CUresult ChangeLane(uint64_t lane);
  CUresult GrowInLane(uint64_t bytes);
  CUresult TryGrowInLane(uint64_t wanted);
  CUresult GiveLaneBack();
  void DoSwap(bool out, bool with_lane);
  bool TakesMemory();

  // The stream of the call being served, as the codec translated it.
  StreamTable::Stream* CallStream() const { return call_stream_; }
  CUresult PlaceMark(StreamTable::Stream* stream, const ipc::Mark& mark);
  bool CanCopyAtOnce(size_t count, CUstream stream);
  CUresult CopyOut(uint64_t staging_offset, CUdeviceptr from, size_t count, CUstream stream,
                   bool at_once);
  // Marks the end of a copy and returns what failed first. At once: it had ended when the driver
  // returned.
  CUresult MarkCopy(CUresult copied, const ipc::Mark& mark, bool at_once = false);
  // Instead of PlaceMark, when all on the stream is complete, what the mark came with, too.
  void ReachMark(StreamTable::Stream* stream, const ipc::Mark& mark);
  CUresult RingAfter(StreamTable::Stream* stream);
  void WakeClient();
  void WakeClientAfterWork();
  void RingClient();

  void SetUpBlas(cublasHandle_t handle);
  void ForgetBlas(cublasHandle_t handle);
  void OrderBlasStream(cublasHandle_t handle);
  void UseBlasWorkspace(cublasHandle_t handle, const BlasState& state);
  void AfterSetStream();
  void DestroyLibraryObjects();
  void DestroyGraphPieces();
  void CaptureBlas(cublasHandle_t handle, BlasState* state);
  void AfterCapturedCall();
  // The piece touches at each launch what the call being served has named.
  void NoteTouched(CUgraphExec piece);

  const Environment& environment_;
  const ipc::DriverTable& driver_;
  common::ProgressMap progress_;
  EventTimes event_times_;
  const ipc::DriverTable table_;  // what calls reach: the driver's, but for what it cannot know
  const ipc::Targets targets_;
  const uint64_t session_id_;
  const std::shared_ptr<ipc::SessionFile> shared_file_;  // with the driver, until it lets it go
  ipc::SessionFile& file_;
  ipc::Channel channel_;
  Arena arena_;
  PinnedMemory pinned_;
  OwnAddresses addresses_;
  const SeenDevices seen_devices_;
  StreamTable streams_;
  DeferredFrees frees_;
  OpenWaits waits_;
  HandleMap handles_;
  ModuleAssembly assembly_;
  absl::flat_hash_map<CUmodule, ModuleState> module_states_;
  absl::flat_hash_map<CUfunction, CUmodule> function_modules_;
  absl::flat_hash_map<cublasHandle_t, BlasState> blas_;
  struct LastRecord {
    CUstream stream;
    ipc::HandleId id;
    int device;
    bool saved;  // its time, in event_times_
  };
  absl::flat_hash_map<CUevent, LastRecord> event_records_;
  bool unsaved_records_ = false;
  ipc::HandleId call_event_ = {};  // the last one that a call named
  IterationEnds iteration_ends_;
  StreamTable::Stream* work_stream_ = nullptr;  // of the last work
  std::unique_ptr<std::byte[]> scratch_;
  std::unique_ptr<std::byte[]> reply_;

  int device_ = -1;  // whose context is current on the session's thread
  StreamTable::Stream* call_stream_ = nullptr;
  cublasHandle_t call_blas_ = nullptr;  // of the call being served
  GraphBooks graph_books_;
  GraphPiece* capture_ = nullptr;           // that libraries are captured into
  bool into_capture_ = false;               // the call being served is
  bool serves_work_ = false;                // the call being served touches what it names now
  std::vector<AddressSpan> named_;          // by the call being served, for later
  cublasHandle_t captured_blas_ = nullptr;  // its handle, whose stream is the capture's
  bool registered_ = false;                 // the session file is known to the driver
  std::atomic<bool> stop_{false};
  std::thread releaser_;              // runs ReleaseUntilDone once it is to stop
  absl::Notification done_;           // its streams are done
  std::atomic<bool> release_{false};  // wanted by Release()
  bool released_ = false;
  uint32_t awaited_ = 0;           // the generation that the client must acknowledge first
  std::atomic<bool> quiet_{true};  // the page's quiet_position is up to date
  mutable std::atomic<bool> lost_{false};
  absl::Mutex print_mutex_;

  std::unique_ptr<Gate> gate_;          // null: none, everyone runs at once
  std::atomic<uint32_t> poked_{0};      // something besides messages waits for the session's thread
  std::atomic<uint32_t> callbacks_{0};  // that the device still owes this session
  std::atomic<uint32_t> undone_{0};     // streams that the lane's hand-over still waits for
  bool at_boundary_ = true;             // nothing of an iteration lies in the lane
  uint64_t work_ = 0;                   // operations since then
  uint64_t work_before_ = 0;            // in the iteration before
  pid_t thread_id_ = 0;                 // of the session's own thread
  std::atomic<bool> gives_way_{false};  // that thread interrupts nobody (SCHED_BATCH)
  bool busy_ = false;                   // it sends work, and does not only ask
  bool client_sleeps_ = false;          // until the device has done what was sent last
  const StreamTable::Stream* rung_after_ = nullptr;  // on which stream
  std::atomic<bool> ring_waits_{false};  // it is rung when the lane has been handed over
  std::atomic<bool> ring_owed_{false};   // it would have been rung
  AssignedLane lane_;
  std::atomic<bool> going_out_{false};    // told to, and the answer is not posted
  std::atomic<bool> coming_in_{false};    // the same
  bool takes_memory_ = false;             // waits until what it was granted is there
  bool inside_ = false;                   // of its lane (LaneTable::Enter)
  std::atomic<uint64_t> asked_bytes_{0};  // persistent memory that lanewayd knows of
  uint64_t given_back_ = 0;               // how often it was told of less
  int64_t patience_us_ = kPatienceUs;     // how long to wait for a message before looking around
  int64_t unquiet_us_ = kUnquietUs;       // the same while the device is busy
  int64_t rested_us_ = 0;                 // since when it has had no work
  ipc::IterationClock clock_;
  mutable std::mutex command_mutex_;  // not Abseil's, whose packaged library TSan does not see
  std::vector<std::function<void()>> commands_ ABSL_GUARDED_BY(command_mutex_);
  std::vector<LanewaydAnswer> answers_ ABSL_GUARDED_BY(command_mutex_);
};

}  // namespace worker
