#include "daemon/worker/lane_executor.h"

#include <vector>

namespace worker {

// --- facts ---------------------------------------------------------------------------------------

bool LaneExecutor::IsItsTurn() const {
  if (gate_ == nullptr) return true;
  return gate_->state() == GateState::kOpen && !gate_->idle() && around_.lane->has_lane();
}

bool LaneExecutor::IsGranted(uint64_t lane) const {
  if (gate_ == nullptr) return true;
  return ipc::control::IsOwnLane(lane) ? !gate_->closed() : gate_->OpensInto(lane);
}

bool LaneExecutor::IsQuiet() { return !hand_over_.under_way() && around_.held->StreamsIdle(); }

// The client's count of its blocks is ahead of the ring, so the count is used only when the ring is
// empty. A client that sleeps after a whole iteration's work need not wake up and say that it ends:
// the lane would lie idle until then.
LaneFacts LaneExecutor::Now() {
  LaneFacts facts;
  facts.gate = gate_ == nullptr ? GateState::kOpen : gate_->state();
  facts.uses_lane = around_.lane->UsesLane();
  facts.inside = around_.lane->is_inside();
  facts.pinned = facts.uses_lane && around_.lane->is_pinned();
  facts.client_is_done = facts.uses_lane && !turn_.at_boundary &&
                         around_.page->lane_blocks.load(std::memory_order_acquire) == 0 &&
                         !around_.message_waits();
  facts.waits_at_the_end = around_.bell->client_sleeps() && around_.iterations->has_work_of_one();
  facts.iterates = around_.iterations->expects_boundary();
  return facts;
}

bool LaneExecutor::LaneIsEmpty() { return worker::LaneIsEmpty(turn_, Now()); }

// --- events --------------------------------------------------------------------------------------

void LaneExecutor::Take(LaneEvent event, const LaneFacts& facts) {
  if (Step(&turn_, event, facts) == LaneAction::kLeave) LeaveLane();
}

void LaneExecutor::OnWork() { Take(LaneEvent::kWork, {}); }

void LaneExecutor::OnRevoked(LaneEvent event) {
  if (gate_ != nullptr && gate_->state() == GateState::kRevoked) Take(event, Now());
}

void LaneExecutor::OnSilence() {
  LaneFacts facts = Now();
  facts.device_is_done = around_.held->StreamsIdle();
  Take(LaneEvent::kSilence, facts);
}

// The boundary comes first: spare memory is given up there before the lane is left.
void LaneExecutor::OnBoundary() {
  Take(LaneEvent::kBoundary, {});
  Reclaim();
  if (gate_ == nullptr || gate_->closed()) return;
  const bool is_revoked = gate_->state() == GateState::kRevoked;
  const bool turn_is_over = !is_revoked && gate_->TurnIsOver();
  if (!is_revoked && !turn_is_over) return;
  LaneFacts facts = Now();
  facts.turn_is_over = turn_is_over;
  Take(LaneEvent::kBoundary, facts);
}

// During a replay the client names the blocks that another worker kept; their memory stays.
void LaneExecutor::Reclaim() {
  if (!around_.lane->has_spare() || !turn_.at_boundary) return;
  if (around_.life->Replays() || !IsQuiet()) return;
  around_.lane->Reclaim();
}

bool LaneExecutor::MayLeave() {
  return Step(&turn_, LaneEvent::kRest, Now()) == LaneAction::kMayGo;
}

LaneAction LaneExecutor::OnOrderedOut(LaneFacts order) {
  order.uses_lane = around_.lane->UsesLane();
  order.inside = around_.lane->is_inside();
  order.pinned = around_.lane->is_pinned();
  return Step(&turn_, LaneEvent::kOrderedOut, order);
}

// --- leaving -------------------------------------------------------------------------------------

// The lane's memory may be another's only when the device has finished with it: one mapping's
// writes are visible through another only across completed work (CUDA's rule for aliased memory).
void LaneExecutor::LeaveLane() {
  around_.iterations->OnTurnEnds();
  ipc::CountSwitch(&around_.page->iteration_times);
  gate_->Close();
  std::vector<StreamTable::Stream*> busy = around_.held->streams.All();
  std::erase_if(busy, [this](const StreamTable::Stream* stream) {
    return around_.held->environment.driver->cuStreamQuery(stream->driver) == CUDA_SUCCESS;
  });
  // The next session goes first: waking the client keeps the device's thread for longer.
  around_.bell->BeginHandOver(busy);
  hand_over_.Begin(busy.size());
  for (const StreamTable::Stream* const stream : busy) {
    if (around_.callbacks->After(stream->driver, &stream_done_) != CUDA_SUCCESS) NoteStreamDone();
  }
  NoteStreamDone();
}

void LaneExecutor::NoteStreamDone() {
  if (!hand_over_.Part()) return;
  around_.lane->Exit();
  hand_over_.Finish();
  gate_->HandOver();
  around_.bell->EndHandOver();
}

}  // namespace worker
