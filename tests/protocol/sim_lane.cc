#include "tests/protocol/sim_lane.h"

#include <utility>

namespace protocol {

namespace wire = ipc::control;
using worker::LaneAction;
using worker::LaneEvent;

SimLane::SimLane(Scene* scene, const worker::Environment* environment,
                 const wire::SessionRecord& record, Program* program,
                 std::map<uint64_t, uint64_t>* tags)
    : scene_(scene),
      session_(record.session_id),
      environment_(*environment),
      base_(SlotAddress(record.slot) + ipc::limits::kEphemeralOffset),
      program_(program),
      tags_(tags),
      member_(record.session_id, 1000, base_, job_),
      gate_(std::make_unique<worker::Gate>(environment->board, record.session_id, [] {})) {}

bool SimLane::is_used() const {
  return is_inside() && (in_flight_ != 0 || hand_over_.under_way() || live_tag_ != 0);
}

// --- turns ---------------------------------------------------------------------------------------

worker::LaneFacts SimLane::Now() {
  worker::LaneFacts facts;
  facts.gate = gate_->state();
  facts.uses_lane = assigned_.uses();
  facts.inside = is_inside();
  facts.pinned = facts.uses_lane && environment_.lanes->Pinned(&member_);
  facts.client_is_done =
      facts.uses_lane && !turn_.at_boundary && !program_->blocks && program_->ring.empty();
  facts.iterates = program_->iterates;
  return facts;
}

void SimLane::On(LaneEvent event) {
  worker::LaneFacts facts = Now();
  if (event == LaneEvent::kSilence) facts.device_is_done = in_flight_ == 0;
  if (Step(&turn_, event, facts) == LaneAction::kLeave) Leave();
}

bool SimLane::MayLeave() {
  const bool may = Step(&turn_, LaneEvent::kRest, Now()) == LaneAction::kMayGo;
  if (turn_.at_boundary) live_tag_ = 0;
  return may;
}

bool SimLane::IsItsTurn() const {
  return gate_->state() == worker::GateState::kOpen && !gate_->idle() && Has();
}

LaneAction SimLane::MayGoOut(bool with_lane, bool takes_memory) {
  worker::LaneFacts facts;
  facts.uses_lane = assigned_.uses();
  facts.inside = is_inside();
  facts.pinned = environment_.lanes->Pinned(&member_);
  facts.on_host = program_->swapped().held;
  facts.with_lane = with_lane;
  facts.takes_memory = takes_memory;
  return Step(&turn_, LaneEvent::kOrderedOut, facts);
}

void SimLane::Leave() {
  live_tag_ = 0;
  NoteHeld(false);
  gate_->Close();
  scene_->Change();
  hand_over_.Begin(in_flight_ != 0 ? 1 : 0);
  NoteDeviceDone();
}

// A part of the way out: the session's own, or the device's.
void SimLane::NoteDeviceDone() {
  if (!hand_over_.Part()) return;
  Exit();
  hand_over_.Finish();
  gate_->HandOver();
}

// --- the device ----------------------------------------------------------------------------------

bool SimLane::FinishDeviceWork() {
  if (in_flight_ == 0) return false;
  --in_flight_;
  scene_->Change();
  if (in_flight_ == 0 && hand_over_.under_way()) NoteDeviceDone();
  return true;
}

// What a kernel touches is there, and is the session's alone.
void SimLane::Work(const Op& op) {
  scene_->Require(!gate_->closed(), "work passes a closed gate");
  scene_->Require(!program_->swapped().held, "work of a session whose memory is on the host");
  scene_->Require(Has(), "work of a session outside its lane");
  On(LaneEvent::kWork);
  if (held_since_us_ == 0) held_since_us_ = scene_->now_us;
  ++in_flight_;
  if (assigned_.uses()) CheckWork(op);
}

void SimLane::CheckWork(const Op& op) {
  uint64_t end = 0;
  const uint64_t tag_now = (session_ << 32) + scene_->changes;
  for (const worker::Piece& part : environment_.lanes->Mapped(&member_)) {
    end = part.address + part.extent.bytes - base_;
    uint64_t& tag = (*tags_)[part.extent.id];
    scene_->Require(live_tag_ == 0 || tag == live_tag_, "what lives in a lane has lost its bytes");
    if (op.blocks && live_tag_ == 0) tag = tag_now;
  }
  scene_->Require(end >= assigned_.bytes(), "a session is in a lane that is smaller than its need");
  if (op.blocks && live_tag_ == 0) live_tag_ = tag_now;
}

// As its progress says it to lanewayd.
void SimLane::NoteHeld(bool boundary) {
  ipc::Progress& progress = program_->files().progress();
  const int64_t since_us = std::exchange(held_since_us_, 0);
  if (since_us != 0) progress.held_us.fetch_add(static_cast<uint64_t>(scene_->now_us - since_us));
  if (boundary) progress.iterations.fetch_add(1);
}

void SimLane::Boundary() {
  Step(&turn_, LaneEvent::kBoundary, {});
  live_tag_ = 0;
  NoteHeld(true);
  Reclaim();
  if (gate_->closed()) return;
  worker::LaneFacts facts = Now();
  facts.turn_is_over = facts.gate != worker::GateState::kRevoked && gate_->TurnIsOver();
  if (Step(&turn_, LaneEvent::kBoundary, facts) == LaneAction::kLeave) Leave();
}

// --- the lane's memory ---------------------------------------------------------------------------

CUresult SimLane::Enter() {
  if (is_inside() || member_.lane() == 0) return CUDA_SUCCESS;
  const CUresult result = environment_.lanes->Enter(&member_);
  if (result != CUDA_SUCCESS) return result;
  scene_->Change();
  return result;
}

CUresult SimLane::EnterGranted() {
  const uint64_t lane = member_.lane();
  const bool granted = wire::IsOwnLane(lane) ? !gate_->closed() : gate_->OpensInto(lane);
  const CUresult result = granted ? Enter() : CUDA_SUCCESS;
  return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
}

void SimLane::Exit() {
  if (!is_inside()) return;
  environment_.lanes->Exit(&member_);
}

void SimLane::Forsake() {
  Exit();
  environment_.lanes->Leave(&member_);
}

CUresult SimLane::Change(uint64_t lane) {
  if (member_.lane() == lane) return CUDA_SUCCESS;
  Forsake();
  scene_->Change();
  const CUresult result = environment_.lanes->Join(&member_, lane, 0);
  return result == CUDA_SUCCESS ? environment_.lanes->ReserveAgain(&member_, assigned_.bytes())
                                : result;
}

void SimLane::FollowTold(uint64_t lane, bool away) {
  const bool stays = IsOccupied() && lane != number();
  const uint64_t now = assigned_.Follow(lane, away, stays);
  if (now != 0) (void)Change(now);
  scene_->Change();
}

void SimLane::Reclaim() {
  if (!assigned_.follows_late() || !turn_.at_boundary || !is_still()) return;
  if (environment_.lanes->Pinned(&member_)) return;
  if (const uint64_t now = assigned_.FollowLate(); now != 0) (void)Change(now);
}

CUresult SimLane::Reserve(uint64_t bytes) {
  CUresult joined = CUDA_SUCCESS;
  if (member_.lane() == 0)
    joined = environment_.lanes->Join(&member_, wire::OwnLaneOf(session_), 0);
  return joined == CUDA_SUCCESS ? environment_.lanes->Reserve(&member_, bytes) : joined;
}

void SimLane::WriteBack() {
  for (const worker::Piece& part : environment_.lanes->Mapped(&member_)) {
    if (live_tag_ != 0) (*tags_)[part.extent.id] = live_tag_;
  }
}

void SimLane::End(bool to_successor) {
  environment_.lanes->ForgetKept(&member_);
  Exit();
  environment_.lanes->Leave(&member_, to_successor);
  gate_.reset();
}

std::string SimLane::Describe() const {
  return "lane " + std::to_string(member_.lane()) + " told " + std::to_string(assigned_.told()) +
         " needs " + std::to_string(assigned_.bytes() / kUnit) +
         (gate_ == nullptr  ? " no gate"
          : gate_->closed() ? " closed"
                            : " open") +
         (is_inside() ? " inside" : "") + (turn_.at_boundary ? " at a boundary" : "") +
         (assigned_.follows_late() ? " follows late" : "") +
         (hand_over_.under_way() ? " leaving" : "") +
         (gate_ != nullptr && gate_->idle() ? " rests" : "") + " in flight " +
         std::to_string(in_flight_);
}

}  // namespace protocol
