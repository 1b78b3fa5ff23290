#include "daemon/worker/gate.h"

#include <sched.h>

#include <algorithm>
#include <cassert>
#include <utility>

namespace worker {
namespace {

using ipc::control::GateEvent;

// Turns among those whom no daemon orders: a few iterations of most programs.
constexpr int64_t kTurnUs = 200'000;
// What a session spins for while the device finishes what another has queued.
constexpr int64_t kImminentUs = 20'000;

}  // namespace

// --- gate ----------------------------------------------------------------------------------------

Gate::Gate(Board* board, uint64_t session_id, std::function<void()> wake)
    : board_(board), session_id_(session_id), wake_(std::move(wake)) {
  const Board::Lock lock(&board_->mutex_);
  assert(board_->gates_.count(session_id) == 0);
  board_->gates_[session_id] = this;
}

Gate::~Gate() {
  const Board::Lock lock(&board_->mutex_);
  wants_ = false;
  TellRestLocked();
  if (holds_) board_->HandOverLocked(this);
  board_->gates_.erase(session_id_);
  std::erase_if(board_->lanes_, [this](const std::pair<const uint64_t, Board::Lane>& lane) {
    return std::none_of(board_->gates_.begin(), board_->gates_.end(),
                        [&lane](const std::pair<const uint64_t, Gate*>& gate) {
                          return gate.second->lane_ == lane.first;
                        });
  });
}

bool Gate::OpensInto(uint64_t lane) const {
  const Board::Lock lock(&board_->mutex_);
  return !closed() && lane_ == lane;
}

void Gate::Set(GateState state) { state_.store(state); }

void Gate::Want() {
  if (!resting()) return;
  resting_ = Resting::kNot;
  const Board::Lock lock(&board_->mutex_);
  wants_ = true;
  wanted_ = ++board_->wants_;
  if (std::exchange(untold_rest_, std::nullopt).has_value()) return;  // it is believed to run
  if (board_->daemon_.load()) {
    board_->TellLocked(ipc::control::GateReport{session_id_, GateEvent::kRunnable});
    return;
  }
  Board::Lane& lane = board_->lanes_[lane_];
  if (lane.holder != nullptr) {
    lane.holder->wake_();  // it may rest with the lane
  } else if (board_->CanFollow(*this) && !lane.shared) {
    board_->Open(this, &lane);
  }
}

void Gate::Rest(bool at_boundary) {
  const Resting rests = at_boundary ? Resting::kAtBoundary : Resting::kInIteration;
  if (resting_ >= rests) return;
  resting_ = rests;
  const Board::Lock lock(&board_->mutex_);
  wants_ = false;
  untold_rest_ = at_boundary ? GateEvent::kIdle : GateEvent::kStalled;
  if (!board_->IsAloneLocked(*this)) TellRestLocked();
}

void Gate::TellRest() {
  const Board::Lock lock(&board_->mutex_);
  TellRestLocked();
}

void Gate::TellRestLocked() {
  if (!untold_rest_.has_value()) return;
  board_->TellLocked(ipc::control::GateReport{session_id_, *untold_rest_});
  untold_rest_.reset();
}

bool Gate::rests_untold() const {
  const Board::Lock lock(&board_->mutex_);
  return untold_rest_.has_value();
}

bool Gate::alone() const {
  const Board::Lock lock(&board_->mutex_);
  return board_->IsAloneLocked(*this);
}

void Gate::Close() {
  Set(GateState::kClosed);
  const Board::Lock lock(&board_->mutex_);
  if (!holds_) return;
  Gate* const next = board_->Next(lane_, board_->lanes_[lane_]);
  if (next == nullptr) return;
  next->imminent_.store(true);
  next->wake_();
}

// Waking up takes longer than a whole switch. Whoever else wants the processor gets it.
void Gate::AwaitTurn(const std::function<bool()>& stop) {
  if (!BeginAwait()) return;
  const int64_t end_us = board_->clock_() + kImminentUs;
  while (closed() && !stop() && board_->clock_() < end_us) sched_yield();
  EndAwait();
}

bool Gate::BeginAwait() {
  if (!imminent_.exchange(false)) return false;
  spins_.store(true);
  return true;
}

void Gate::Settle() {
  unsettled_.store(false, std::memory_order_relaxed);
  board_->Settle();
}

int64_t Gate::OpenUs() const {
  const int64_t opened_us = opened_us_.load(std::memory_order_relaxed);
  return opened_us == 0 ? 0 : board_->clock_() - opened_us;
}

bool Gate::TurnIsOver() const {
  if (board_->daemon_.load(std::memory_order_relaxed)) return false;
  const int64_t held_us = OpenUs();
  if (held_us != 0 && held_us < kTurnUs && !resting()) return false;
  const Board::Lock lock(&board_->mutex_);
  return board_->WaitsInLane(*this);
}

void Gate::HandOver() {
  const Board::Lock lock(&board_->mutex_);
  if (holds_) board_->HandOverLocked(this);
}

void Gate::Abandon() {
  const Board::Lock lock(&board_->mutex_);
  away_ = true;
  TellRestLocked();
  if (holds_) board_->FreeLane(this);
}

bool Gate::TakeLane() {
  const Board::Lock lock(&board_->mutex_);
  Board::Lane& lane = board_->lanes_[lane_];
  if (lane.holder != nullptr && lane.holder != this) return false;
  lane.holder = this;
  holds_ = true;
  return true;
}

void Gate::Return() {
  const Board::Lock lock(&board_->mutex_);
  away_ = false;
  if (holds_) board_->Open(this, &board_->lanes_[lane_]);
}

// --- board ---------------------------------------------------------------------------------------

void Board::Open(Gate* gate, Lane* lane) {
  assert(lane->holder == nullptr || lane->holder == gate);
  lane->holder = gate;
  lane->successors.clear();  // they were to follow whoever was here before
  gate->holds_ = true;
  gate->opened_us_.store(clock_(), std::memory_order_relaxed);
  gate->Set(GateState::kOpen);
  // Either its thread sees the gate open, or this one sees that it does not spin any more.
  if (!gate->spins_.load()) gate->wake_();
}

bool Board::CanFollow(const Gate& gate) const {
  return gate.wants_ && !gate.away_ && !gate.holds_ && paused_.count(gate.session_id_) == 0;
}

// A list may be older than what its sessions were told since: that one is in another lane.
Gate* Board::Next(uint64_t lane_id, const Lane& lane) const {
  for (const uint64_t id : lane.successors) {
    Gate* const gate = FindLocked(id);
    if (gate != nullptr && gate->lane_ == lane_id && CanFollow(*gate)) return gate;
  }
  if (daemon_.load()) return nullptr;
  Gate* first = nullptr;
  for (const std::pair<const uint64_t, Gate*>& entry : gates_) {
    Gate* const gate = entry.second;
    if (gate->lane_ != lane_id || !CanFollow(*gate)) continue;
    if (first == nullptr || gate->wanted_ < first->wanted_) first = gate;
  }
  return first;
}

void Board::FreeLane(Gate* gate) {
  Lane& lane = lanes_[gate->lane_];
  assert(lane.holder == gate);
  lane.holder = nullptr;
  gate->holds_ = false;
  gate->opened_us_.store(0, std::memory_order_relaxed);
  gate->Set(GateState::kClosed);
  gate->wanted_ = ++wants_;  // behind those who wait
}

void Board::HandOverLocked(Gate* gate) {
  FreeLane(gate);
  Lane& lane = lanes_[gate->lane_];
  Gate* const next = Next(gate->lane_, lane);
  const ipc::control::Switched switched{gate->lane_, gate->session_id_,
                                        next == nullptr ? 0 : next->session_id_, clock_()};
  // Opened last: its thread needs the board at once, and would go to sleep for it.
  if (next != nullptr && next->spins_.load()) {
    untold_.push_back(switched);
    next->unsettled_.store(true, std::memory_order_relaxed);
    return Open(next, &lane);
  }
  if (next != nullptr) Open(next, &lane);
  TellLocked(switched);
}

void Board::TellLocked(const ipc::control::WorkerToDaemon& message) {
  SettleLocked();
  tell_(message);
}

void Board::Settle() {
  const Lock lock(&mutex_);
  SettleLocked();
}

void Board::SettleLocked() {
  for (const ipc::control::Switched& switched : untold_) tell_(switched);
  untold_.clear();
}

bool Board::WaitsInLane(const Gate& but) const {
  return std::any_of(gates_.begin(), gates_.end(),
                     [this, &but](const std::pair<const uint64_t, Gate*>& entry) {
                       const Gate& gate = *entry.second;
                       return &gate != &but && gate.lane_ == but.lane_ && CanFollow(gate);
                     });
}

bool Board::IsAloneLocked(const Gate& gate) const {
  const std::map<uint64_t, Lane>::const_iterator lane = lanes_.find(gate.lane_);
  return lane != lanes_.end() && lane->second.alone && lane->second.holder == &gate &&
         gate.state() == GateState::kOpen;
}

Gate* Board::FindLocked(uint64_t session_id) const {
  const std::map<uint64_t, Gate*>::const_iterator found = gates_.find(session_id);
  return found == gates_.end() ? nullptr : found->second;
}

void Board::Grant(uint64_t session_id, uint64_t lane_id) {
  const Lock lock(&mutex_);
  Gate* const gate = FindLocked(session_id);
  if (gate == nullptr) {  // it ended meanwhile; whoever granted believes the lane held
    TellLocked(ipc::control::Switched{lane_id, session_id, 0, clock_()});
    return;
  }
  Lane& lane = lanes_[lane_id];
  if (gate->holds_ && gate->lane_ == lane_id) {
    if (gate->state() == GateState::kRevoked) gate->Set(GateState::kOpen);
    return;
  }
  // A lane is never opened over its holder, whatever is asked: lanewayd must hear who that is.
  if (lane.holder != nullptr || gate->holds_) {
    const uint64_t holder = lane.holder == nullptr ? 0 : lane.holder->session_id_;
    TellLocked(ipc::control::Switched{lane_id, session_id, holder, clock_()});
    return;
  }
  gate->lane_ = lane_id;
  Open(gate, &lane);
}

void Board::Revoke(uint64_t session_id) {
  const Lock lock(&mutex_);
  Gate* const gate = FindLocked(session_id);
  if (gate == nullptr || gate->state() != GateState::kOpen) return;
  gate->TellRestLocked();
  gate->Set(GateState::kRevoked);
  gate->wake_();
}

void Board::SetSuccessors(uint64_t lane, std::vector<uint64_t> session_ids) {
  const Lock lock(&mutex_);
  lanes_[lane].successors = std::move(session_ids);
}

void Board::SetPaused(uint64_t session_id, bool paused) {
  const Lock lock(&mutex_);
  const bool changed = paused ? paused_.insert(session_id).second : paused_.erase(session_id) != 0;
  Gate* const gate = FindLocked(session_id);
  if (gate == nullptr || !changed) return;
  gate->TellRestLocked();
  if (paused && gate->state() == GateState::kOpen) gate->Set(GateState::kRevoked);
  gate->wake_();
}

void Board::SetLane(uint64_t session_id, uint64_t lane) {
  const Lock lock(&mutex_);
  Gate* const gate = FindLocked(session_id);
  if (gate == nullptr || gate->lane_ == lane) return;
  gate->TellRestLocked();
  if (gate->holds_) FreeLane(gate);
  gate->lane_ = lane;
}

void Board::SetShared(uint64_t lane, bool shared) {
  const Lock lock(&mutex_);
  lanes_[lane].shared = shared;
}

void Board::SetAlone(uint64_t lane, bool alone) {
  const Lock lock(&mutex_);
  lanes_[lane].alone = alone;
  for (const std::pair<const uint64_t, Gate*>& entry : gates_) {
    if (alone || entry.second->lane_ != lane) continue;
    entry.second->TellRestLocked();
    entry.second->wake_();  // somebody may wait for what it does not look at so often
  }
}

void Board::SetDaemon(bool present) {
  const Lock lock(&mutex_);
  daemon_.store(present);
  // A new daemon is to say anew who is alone; it reads who wants.
  for (std::pair<const uint64_t, Lane>& entry : lanes_) entry.second.alone = false;
  for (const std::pair<const uint64_t, Gate*>& entry : gates_) {
    entry.second->TellRestLocked();
    entry.second->wake_();
  }
  if (present) return;
  // Nobody else will open the lanes that are free just now.
  for (const std::pair<const uint64_t, Gate*>& entry : gates_) lanes_[entry.second->lane_];
  for (std::pair<const uint64_t, Lane>& entry : lanes_) {
    if (entry.second.holder != nullptr || entry.second.shared) continue;
    if (Gate* const next = Next(entry.first, entry.second)) Open(next, &entry.second);
  }
}

GateView Board::View(uint64_t session_id) const {
  const Lock lock(&mutex_);
  const Gate* const gate = FindLocked(session_id);
  if (gate == nullptr) return {};
  return {gate->lane_, gate->holds_, gate->wants_};
}

}  // namespace worker
