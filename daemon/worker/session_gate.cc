// A session at the gate: when messages may be taken, how the lane is left, what else its thread
// does.
//
// The gate is asked before a message is taken, so what waits stays in the ring: a session that
// waits here with nothing on the device can be moved to another worker with all that it has not
// done yet.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "daemon/worker/session_impl.h"
#include "daemon/worker/work_ops.h"
#include "ipc/calls/limits.h"
#include "ipc/futex.h"

namespace worker {
namespace {

constexpr int64_t kRetryUs = 500;         // until the device has finished
constexpr int64_t kNapUs = 250'000;       // whatever matters rings the doorbell; this is only a net
constexpr int64_t kShortRestUs = 50'000;  // not worth telling of when nobody waits

}  // namespace

SessionImpl::Waiting::Waiting(SessionImpl* session, ipc::WaitState reason)
    : session_(*session), begin_us_(NowUs()) {
  ipc::Progress& progress = *session_.progress_.get();
  progress.wait_since_us.store(static_cast<uint64_t>(begin_us_), std::memory_order_relaxed);
  progress.wait.store(reason, std::memory_order_release);
}

SessionImpl::Waiting::~Waiting() {
  session_.progress_.get()->wait.store(ipc::WaitState::kNothing, std::memory_order_release);
  ipc::CountWait(&session_.file_.page()->iteration_times,
                 static_cast<uint64_t>(NowUs() - begin_us_));
}

// --- messages ------------------------------------------------------------------------------------

// A message that comes soon is worth looking out for, but not on a processor that the device's own
// threads may want: they would wait for this one until it sleeps.
int64_t SessionImpl::SpinUs() const {
  return environment_.on_processors && busy_ ? 0 : ipc::limits::kSpinUs;
}

bool SessionImpl::PassGate() {
  if (poked_.load(std::memory_order_relaxed) != 0) RunCommands();
  if (IsItsTurn()) return true;
  if (gate_->state() == GateState::kRevoked && MayLeave()) LeaveLane();
  if (!gate_->closed() && !gate_->resting()) return TryEnterLane();
  const int64_t nap_us = gate_->rests_untold() ? kShortRestUs : kNapUs;
  const std::span<const std::byte> message =
      channel_.receiver->PeekUntrusted(SpinUs(), Patience(nap_us));
  if (message.empty()) {
    if (channel_.receiver->broken()) return true;  // taking it tells
    OnSilence();
    return false;
  }
  if (!AwaitsTurn(message)) return true;
  gate_->Want();
  if (gate_->closed()) Park();
  clock_.Start(NowUs());
  return !gate_->closed() && TryEnterLane();
}

// The message is this side's copy, the one that is served when it is taken.
bool SessionImpl::AwaitsTurn(std::span<const std::byte> message) const {
  ipc::MessageHeader header;
  std::memcpy(&header, message.data(), sizeof header);
  const std::optional<ipc::Op> op = ipc::OpFromUntrusted(header.op);
  // What lies in the host's memory comes back before a part of it can go.
  if (op == ipc::Op::ArenaUnmap) return held_.arena.swapped();
  // A new worker is told of what an earlier one has kept already: nothing is taken out of the lane.
  if (op == ipc::Op::LaneKeep && life_.Replays()) return false;
  return IsWorkUntrusted(header.op);
}

bool SessionImpl::IsItsTurn() const {
  if (gate_ == nullptr) return true;
  return gate_->state() == GateState::kOpen && !gate_->resting() && HasItsLane();
}

// An open gate alone does not say so: since it was inside, it may have been to the host.
bool SessionImpl::HasItsLane() const { return !lane_.uses() || inside_; }

// The lane may have grown while others held it. False also when it was told to leave meanwhile: a
// command that it runs while it waits here may be the way to the host.
bool SessionImpl::TryEnterLane() {
  if (!RunCommands()) return false;  // it may be told to change its lane first
  const bool lacks_lane = lane_.Lacks(held_.arena.lane_member()->lane() != 0);
  CUresult result = lacks_lane ? GrowInLane(lane_.bytes()) : CUDA_SUCCESS;
  if (result == CUDA_SUCCESS) {
    result = WhenThereIsRoom(0, [this] { return EnterGrantedLane(); });
  }
  if (result == CUDA_SUCCESS && !gate_->closed() && !HasItsLane()) AwaitLane();
  if (result == CUDA_SUCCESS || !life_.Alive())
    return result == CUDA_SUCCESS && HasItsLane() && !gate_->closed();
  life_.Lose("laneway: the driver does not map the session's lane; its session ends");
  return false;
}

// Its gate is open, and who was in the lane before has yet to leave it: told of another lane while
// the device was busy, for one. Nobody tells when it has.
void SessionImpl::AwaitLane() {
  const Waiting waiting(this, ipc::WaitState::kTurn);
  std::atomic<uint32_t>* const doorbell = &file_.page()->worker_doorbell;
  const uint32_t ticket = doorbell->load(std::memory_order_seq_cst);
  ipc::FutexWait(doorbell, ticket, kRetryUs);
}

void SessionImpl::Park() {
  const Waiting waiting(this, ipc::WaitState::kTurn);
  std::atomic<uint32_t>* const doorbell = &file_.page()->worker_doorbell;
  while (life_.Alive() && gate_->closed()) {
    const uint32_t ticket = doorbell->load(std::memory_order_seq_cst);
    const bool done = RunCommands();
    PublishQuiet();
    ReclaimLane();
    if (release_.load() && quiet_) break;  // it leaves from here
    gate_->AwaitTurn([this] { return !life_.Alive() || release_.load(); });
    if (gate_->closed()) ipc::FutexWait(doorbell, ticket, done ? Patience(kNapUs) : kRetryUs);
  }
  if (!life_.Alive() || release_.load()) gate_->Settle();
}

void SessionImpl::OnSilence() {
  iteration_ends_.Settle();
  at_boundary_ = at_boundary_ || (held_.StreamsIdle() && LaneIsEmpty());
  PublishQuiet();
  RunCommands();
  patience_us_ = std::min(patience_us_ * 2, kNapUs);
  if (gate_ == nullptr) return;
  if (gate_->resting()) {
    if (NowUs() - rested_us_ >= kShortRestUs) gate_->TellRest();
    return;
  }
  if (!held_.StreamsIdle()) {
    unquiet_us_ = gate_->alone() ? std::min(unquiet_us_ * 2, kPatienceUs) : kUnquietUs;
    return;
  }
  clock_.Stop(progress_.get(), NowUs());
  ReclaimLane();
  rested_us_ = NowUs();
  gate_->Rest(MayLeave());
}

// --- leaving -------------------------------------------------------------------------------------

bool SessionImpl::MayLeave() {
  if (!LaneIsEmpty()) return false;
  at_boundary_ = at_boundary_ || WaitsAtTheEnd() || !clock_.Iterates(*progress_.get());
  return at_boundary_;
}

bool SessionImpl::LaneIsEmpty() {
  if (!lane_.uses()) return true;
  if (PinsLane()) return false;
  if (at_boundary_) return true;
  // The client is ahead: its word counts when all that it has sent before was taken.
  return file_.page()->lane_blocks.load(std::memory_order_acquire) == 0 &&
         !channel_.receiver->Pending();
}

bool SessionImpl::PinsLane() { return held_.arena.lanes()->Pinned(held_.arena.lane_member()); }

// Then the lane changes hands when the device is done, and need not lie idle until the client wakes
// up and says so.
bool SessionImpl::WaitsAtTheEnd() const {
  return bell_.client_sleeps() && work_before_ != 0 && work_ >= work_before_;
}

// The lane's memory may be another's only when the device has finished with it: one mapping's
// writes are visible through another only across completed work (CUDA's rule for aliased memory).
void SessionImpl::LeaveLane() {
  clock_.Stop(progress_.get(), NowUs());
  ipc::CountSwitch(&file_.page()->iteration_times);
  gate_->Close();
  std::vector<StreamTable::Stream*> busy = held_.streams.All();
  std::erase_if(busy, [this](const StreamTable::Stream* stream) {
    return driver_.cuStreamQuery(stream->driver) == CUDA_SUCCESS;
  });
  // The next session goes first: waking the client keeps the device's thread for longer.
  bell_.BeginHandOver(busy);
  undone_.store(static_cast<uint32_t>(2 + busy.size()));  // this call, and the way out itself
  for (const StreamTable::Stream* const stream : busy) {
    if (callbacks_.After(stream->driver, &stream_done_) != CUDA_SUCCESS) NoteStreamDone();
  }
  NoteStreamDone();
}

void SessionImpl::NoteStreamDone() {
  if (undone_.fetch_sub(1) != 2) return;
  ExitLane();
  undone_.store(0);
  gate_->HandOver();
  bell_.EndHandOver();
}

CUresult SessionImpl::Boundary(const ipc::BoundaryInfo* info) {
  at_boundary_ = true;
  work_before_ = std::exchange(work_, 0);
  const int64_t began_us = clock_.began_us(), now_us = NowUs();
  const uint64_t held_us = clock_.EndIteration(*info, progress_.get(), now_us);
  const StreamTable::Stream* const last = handlers_.streams().last_work();
  iteration_ends_.OnBoundary(last == nullptr ? nullptr : last->driver, {began_us, now_us, held_us});
  ReclaimLane();
  if (gate_ == nullptr || gate_->closed()) return CUDA_SUCCESS;
  if ((gate_->state() == GateState::kRevoked || gate_->TurnIsOver()) && MayLeave()) LeaveLane();
  return CUDA_SUCCESS;
}

// --- commands ------------------------------------------------------------------------------------

void SessionImpl::Poke() {
  poked_.store(1, std::memory_order_seq_cst);
  std::atomic<uint32_t>* const doorbell = &file_.page()->worker_doorbell;
  doorbell->fetch_add(1, std::memory_order_seq_cst);
  ipc::FutexWakeAll(doorbell);
}

void SessionImpl::Post(std::function<void()> command) {
  {
    const std::lock_guard<std::mutex> lock(command_mutex_);
    commands_.push_back(std::move(command));
  }
  Poke();
}

// What cannot be done now is tried again at the next silence, or when the lane is handed over.
// Deferred frees are done before the commands, for DoSwap saves all ranges that are still there.
// They are done without the mutex, for they post to lanewayd, and Control calls Snapshot() under
// its own.
bool SessionImpl::RunCommands() {
  poked_.store(0, std::memory_order_seq_cst);
  std::vector<std::function<void()>> commands;
  {
    const std::lock_guard<std::mutex> lock(command_mutex_);
    if (commands_.empty()) return true;
  }
  if (undone_.load() != 0 || !held_.StreamsIdle() || !held_.frees.Poll()) return false;
  {
    const std::lock_guard<std::mutex> lock(command_mutex_);
    commands.swap(commands_);
  }
  for (const std::function<void()>& command : commands) command();
  return true;
}

}  // namespace worker
