#include "tests/protocol/sim_session.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "ipc/overloaded.h"

namespace protocol {
namespace {

namespace wire = ipc::control;

constexpr int kSpinTurnsMax = 8;

}  // namespace

SimSession::SimSession(Scene* scene, const worker::Environment* environment,
                       const wire::SessionRecord& record, Program* program,
                       std::map<uint64_t, uint64_t>* tags)
    : scene_(scene),
      environment_(*environment),
      id_(record.session_id),
      base_(SlotAddress(record.slot)),
      program_(program),
      tags_(tags),
      member_(record.session_id, 1000, base_ + ipc::limits::kEphemeralOffset, job_),
      ranges_(environment, program, record) {
  gate_ = std::make_unique<worker::Gate>(environment_.board, id_, [] {});
  thread_ = Run();
}

SimSession::~SimSession() = default;

void SimSession::Step() {
  if (ended_) return;
  turns_.paused() ? turns_.Resume() : thread_.Start();
  if (!thread_.done()) return;
  ended_ = true;
  scene_->Change();
}

// --- the loop ------------------------------------------------------------------------------------

SimSession::Task SimSession::Run() {
  co_await turns_.NextTurn();
  while (Alive()) {
    if (release_ && MayLeave()) {
      PublishQuiet();
      if (program_->quiet()) co_return LeaveToSuccessor();
    }
    const bool passed = co_await PassGate();
    if (!passed) {
      co_await turns_.NextTurn();
      continue;
    }
    if (!Alive()) break;
    if (program_->ring.empty()) {
      OnSilence();
      co_await turns_.NextTurn();
      continue;
    }
    program_->Acknowledge();
    co_await Serve(program_->ring.front());
    if (gate_->defers_report()) gate_->FlushReports();
    co_await turns_.NextTurn();
  }
  co_await End();
}

SimSession::Get<bool> SimSession::PassGate() {
  RunCommands();
  if (IsItsTurn()) co_return true;
  if (gate_->state() == worker::GateState::kRevoked && MayLeave()) LeaveLane();
  if (!gate_->closed() && !gate_->idle()) co_return co_await TryEnterLane();
  if (program_->ring.empty()) {
    OnSilence();
    co_return false;
  }
  if (!AwaitsTurn(program_->ring.front())) co_return true;
  gate_->ReportRunnable();
  if (gate_->closed()) co_await Park();
  if (gate_->closed()) co_return false;
  co_return co_await TryEnterLane();
}

bool SimSession::AwaitsTurn(const Op& op) const {
  if (op.kind == Op::kFree) return program_->swapped().held;
  return op.kind == Op::kWork;
}

bool SimSession::IsItsTurn() const {
  return gate_->state() == worker::GateState::kOpen && !gate_->idle() && HasItsLane();
}

SimSession::Get<bool> SimSession::TryEnterLane() {
  if (!RunCommands()) co_return false;
  CUresult result = CUDA_SUCCESS;
  if (lane_.uses() && member_.lane() == 0) result = co_await GrowInLane(lane_.bytes);
  if (result == CUDA_SUCCESS) result = co_await WhenThereIsRoom(enter_, false);
  if (result == CUDA_SUCCESS && !gate_->closed() && !HasItsLane()) co_await turns_.NextTurn();
  if (result == CUDA_SUCCESS || !Alive())
    co_return result == CUDA_SUCCESS&& HasItsLane() && !gate_->closed();
  scene_->Fail("a session cannot enter the lane that it was granted");
  co_return false;
}

SimSession::Task SimSession::Park() {
  while (Alive() && gate_->closed()) {
    RunCommands();
    PublishQuiet();
    if (release_ && program_->quiet()) break;
    if (gate_->BeginAwait()) {
      const int turns = scene_->calm ? 1 : static_cast<int>(1 + scene_->dice.Below(kSpinTurnsMax));
      for (int i = 0; i < turns && gate_->closed() && Alive() && !release_; ++i)
        co_await turns_.NextTurn();
      gate_->EndAwait();
    }
    if (gate_->closed()) co_await turns_.NextTurn();
  }
  if (!Alive() || release_) gate_->FlushReports();
}

void SimSession::OnSilence() {
  at_boundary_ = at_boundary_ || (in_flight_ == 0 && LaneIsEmpty());
  PublishQuiet();
  RunCommands();
  if (gate_->idle()) {
    gate_->FlushIdleReport();
    return;
  }
  if (in_flight_ != 0) return;
  gate_->ReportIdle(MayLeave());
  scene_->Change();
}

SimSession::Task SimSession::Serve(Op op) {
  bool done = true;
  CUresult result = CUDA_SUCCESS;
  if (!op.live) live_tag_ = 0;
  switch (op.kind) {
    case Op::kWork:
      Work(op);
      break;
    case Op::kBoundary:
      Boundary();
      break;
    case Op::kAllocate:
      result = co_await Allocate(op.units * kUnit);
      done = result == CUDA_SUCCESS;
      if (done) program_->persistent_units += op.units;
      break;
    case Op::kFree:
      if (!program_->swapped().held) FreeRange();
      break;
    case Op::kLane:
      result = co_await GrowInLane(op.units * kUnit);
      done = result == CUDA_SUCCESS;
      if (done) program_->lane_units = op.units;
      break;
    case Op::kLaneBack:
      co_await GiveLaneBack();
      break;
  }
  if (!Alive()) co_return;  // whoever goes on asks again
  if (op.kind == Op::kLane && !done) program_->lane_asked = program_->lane_units;
  program_->ring.pop_front();
  program_->NoteTaken();
  scene_->Change();
}

// What a kernel touches is there, and is the session's alone.
void SimSession::Work(const Op& op) {
  scene_->Require(!gate_->closed(), "work passes a closed gate");
  scene_->Require(!program_->swapped().held, "work of a session whose memory is on the host");
  scene_->Require(HasItsLane(), "work of a session outside its lane");
  at_boundary_ = false;
  if (held_since_us_ == 0) held_since_us_ = scene_->now_us;
  ++in_flight_;
  if (!lane_.uses()) return;
  uint64_t end = 0;
  for (const worker::Piece& part : environment_.lanes->Mapped(&member_)) {
    end = part.address + part.extent.bytes - base_ - ipc::limits::kEphemeralOffset;
    uint64_t& tag = (*tags_)[part.extent.id];
    scene_->Require(live_tag_ == 0 || tag == live_tag_, "what lives in a lane has lost its bytes");
    if (op.blocks && live_tag_ == 0) tag = (id_ << 32) + scene_->changes;
  }
  scene_->Require(end >= lane_.bytes, "a session is in a lane that is smaller than its need");
  if (op.blocks && live_tag_ == 0) {
    live_tag_ = (id_ << 32) + scene_->changes;
  }
}

// As its progress says it to lanewayd.
void SimSession::NoteHeld(bool boundary) {
  ipc::Progress& progress = program_->files().progress();
  const int64_t since_us = std::exchange(held_since_us_, 0);
  if (since_us != 0) progress.held_us.fetch_add(static_cast<uint64_t>(scene_->now_us - since_us));
  if (boundary) progress.iterations.fetch_add(1);
}

void SimSession::Boundary() {
  NoteHeld(true);
  at_boundary_ = true;
  live_tag_ = 0;
  if (gate_->closed()) return;
  if ((gate_->state() == worker::GateState::kRevoked || gate_->TurnIsOver()) && MayLeave())
    LeaveLane();
}

// --- leaving -------------------------------------------------------------------------------------

void SimSession::PublishQuiet() {
  if (program_->quiet() || !LaneIsEmpty() || in_flight_ != 0) return;
  program_->NoteQuiet();
  scene_->Change();
}

bool SimSession::LaneIsEmpty() const {
  if (!lane_.uses() || at_boundary_) return true;
  return !program_->blocks && program_->ring.empty();
}

bool SimSession::MayLeave() {
  if (!LaneIsEmpty()) return false;
  at_boundary_ = at_boundary_ || !program_->iterates;
  if (at_boundary_) live_tag_ = 0;
  return at_boundary_;
}

void SimSession::LeaveLane() {
  NoteHeld(false);
  gate_->Close();
  undone_ = true;
  scene_->Change();
  if (in_flight_ == 0) NoteDeviceDone();
}

bool SimSession::FinishDeviceWork() {
  if (in_flight_ == 0) return false;
  --in_flight_;
  scene_->Change();
  if (in_flight_ == 0 && undone_) NoteDeviceDone();
  return true;
}

void SimSession::NoteDeviceDone() {
  ExitLane();
  undone_ = false;
  gate_->HandOver();
}

SimSession::Task SimSession::End() {
  while (in_flight_ != 0) co_await turns_.NextTurn();
  ranges_.UnmapAll();
  environment_.lanes->ForgetKept(&member_);
  ForsakeLane();
  gate_.reset();
  program_->SetOnHost({});
}

void SimSession::LeaveToSuccessor() {
  ranges_.DropAll();
  environment_.lanes->ForgetKept(&member_);
  ExitLane();
  environment_.lanes->Leave(&member_, true);
  gate_.reset();
  released_ = true;
}

// --- what it is told and tells ------------------------------------------------------------------

void SimSession::Obey(const worker::Decision& decision) {
  std::visit(
      ipc::Overloaded{
          [this](const wire::Swap& swap) {
            (swap.out != 0 ? going_out_ : coming_in_) = true;
            commands_.push_back([this, swap] { DoSwap(swap.out != 0, swap.with_lane != 0); });
          },
          [this](const wire::AssignLane& assign) {
            if (assign.result == 0) lane_.told = assign.lane;
            if (assign.answer != 0) return answers_.push_back(assign);
            commands_.push_back([this, told = assign.lane] {
              if (lane_.away) {
                lane_.when_back = told;
              } else if (lane_.bytes != 0 && told == lane_.told) {
                (void)ChangeLane(told);
              }
            });
          },
          [this](const wire::MemoryAnswer& answer) { answers_.push_back(answer); },
      },
      decision);
}

worker::SessionSnapshot SimSession::Snapshot() const {
  using scheduler::Residence;
  worker::SessionSnapshot snapshot;
  snapshot.persistent_bytes = asked_bytes_;
  snapshot.lane_bytes = std::max(lane_.bytes, lane_.answered);
  if (lane_.away) {
    snapshot.place = {coming_in_ ? Residence::kComingIn : Residence::kHost, lane_.saved ? 1u : 0u};
  } else if (going_out_) {
    snapshot.place = {Residence::kGoingOut, 0};
  }
  return snapshot;
}

std::string SimSession::Describe() const {
  return "session " + std::to_string(id_) + " lane " + std::to_string(member_.lane()) + " told " +
         std::to_string(lane_.told) + " needs " + std::to_string(lane_.bytes / kUnit) +
         (gate_ == nullptr  ? " no gate"
          : gate_->closed() ? " closed"
                            : " open") +
         (inside_ ? " inside" : "") + (lane_.away ? " on the host" : "") +
         (at_boundary_ ? " at a boundary" : "") + (undone_ ? " leaving" : "") +
         (gate_ != nullptr && gate_->idle() ? " rests" : "") + (release_ ? " to leave" : "") +
         (program_->quiet() ? " quiet" : "") + " ring " + std::to_string(program_->ring.size()) +
         " first " + (program_->ring.empty() ? "-" : std::to_string(program_->ring.front().kind)) +
         " in flight " + std::to_string(in_flight_) + " commands " +
         std::to_string(commands_.size());
}

}  // namespace protocol
