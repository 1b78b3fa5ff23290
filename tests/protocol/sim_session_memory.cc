// SimSession, second part: what is decided elsewhere about its memory.
#include <algorithm>
#include <utility>

#include "tests/protocol/sim_session.h"

namespace protocol {
namespace {

namespace wire = ipc::control;

constexpr CUresult kAskAgain = CUDA_ERROR_NOT_READY;

}  // namespace

// --- its own ranges ------------------------------------------------------------------------------

SimRanges::SimRanges(const worker::Environment* environment, Program* program,
                     const wire::SessionRecord& record)
    : environment_(*environment),
      program_(program),
      session_(record.session_id),
      base_(SlotAddress(record.slot)) {}

CUresult SimRanges::Map(uint64_t address, uint64_t bytes) {
  worker::ExtentRecord wanted;
  wanted.owner = {worker::OwnerKind::kSession, session_};
  wanted.bytes = bytes;
  wanted.address = wanted.range = address;
  wanted.uid = 1000;
  worker::Extent extent;
  const CUresult result = environment_.extents->Create(wanted, &extent);
  if (result != CUDA_SUCCESS) return result;
  (void)worker::MapExtent(environment_, 0, base_ + address, extent);
  ranges_[address] = extent;
  bytes_ += bytes;
  return CUDA_SUCCESS;
}

uint64_t SimRanges::Unmap(uint64_t address) {
  const worker::Extent extent = ranges_.at(address);
  ranges_.erase(address);
  worker::FreePieces(environment_, {{base_ + address, extent}});
  bytes_ -= extent.bytes;
  return extent.bytes;
}

void SimRanges::UnmapAll() {
  while (!ranges_.empty()) Unmap(ranges_.begin()->first);
}

void SimRanges::DropAll() {
  for (const std::pair<const uint64_t, worker::Extent>& range : ranges_)
    worker::DropPieces(environment_, {{base_ + range.first, range.second}});
  ranges_.clear();
  bytes_ = 0;
}

CUresult SimRanges::Restore() {
  std::vector<worker::ExtentRecord> records;
  CUresult result = environment_.extents->List({worker::OwnerKind::kSession, session_}, &records);
  for (const worker::ExtentRecord& record : records) {
    worker::Extent extent;
    if (result == CUDA_SUCCESS) result = environment_.extents->Import(record, &extent);
    if (result != CUDA_SUCCESS) continue;
    if (program_->swapped().held) {  // about to go, or made for its way back
      environment_.extents->Free(extent);
      continue;
    }
    (void)worker::MapExtent(environment_, 0, base_ + record.address, extent);
    ranges_[record.address] = extent;
    bytes_ += extent.bytes;
  }
  return result;
}

CUresult SimRanges::SwapIn() {
  for (const std::pair<uint64_t, uint64_t>& range : program_->swapped().ranges) {
    const CUresult result = Map(range.first, range.second);
    if (result == CUDA_SUCCESS) continue;
    UnmapAll();
    return result;
  }
  program_->SetOnHost({});
  return CUDA_SUCCESS;
}

bool SimSession::Restore() {
  if (ranges_.Restore() != CUDA_SUCCESS) return false;
  asked_bytes_ = ranges_.bytes();
  if (program_->swapped().held) {
    for (const std::pair<uint64_t, uint64_t>& range : program_->swapped().ranges)
      asked_bytes_ += range.second;
    lane_.away = true;
    gate_->OnSwappedOut();
  }
  if (asked_bytes_ < program_->persistent_units * kUnit) return false;
  if (program_->lane_units != 0) program_->ring.push_front({Op::kLane, program_->lane_units});
  return true;
}

// --- questions -----------------------------------------------------------------------------------

template <class AnswerType>
std::optional<AnswerType> SimSession::TakeAnswer() {
  for (size_t i = 0; i < answers_.size(); ++i) {
    const AnswerType* const answer = std::get_if<AnswerType>(&answers_[i]);
    if (answer == nullptr) continue;
    const AnswerType taken = *answer;
    answers_.erase(answers_.begin() + static_cast<ptrdiff_t>(i));
    scene_->Change();
    return taken;
  }
  return std::nullopt;
}

template <class AnswerType>
void SimSession::DropAnswers() {
  std::erase_if(answers_,
                [](const Answer& answer) { return std::holds_alternative<AnswerType>(answer); });
}

template <class AnswerType>
SimSession::Get<std::optional<AnswerType>> SimSession::Ask(wire::WorkerToDaemon question) {
  uint64_t asked = 0;
  while (Alive()) {
    const uint64_t daemon = environment_.daemon->Daemon();
    if (daemon == 0 && !lane_.away) co_return std::nullopt;
    if (asked != daemon && daemon != 0) {
      DropAnswers<AnswerType>();
      environment_.daemon->Post(question);
    }
    asked = daemon;
    if (std::optional<AnswerType> answer = TakeAnswer<AnswerType>()) co_return answer;
    const bool leaves =
        gate_->state() == worker::GateState::kRevoked && (!lane_.uses() || at_boundary_);
    if (leaves) LeaveLane();
    RunCommands();
    co_await turns_.NextTurn();
  }
  co_return std::nullopt;
}

SimSession::Get<CUresult> SimSession::WhenThereIsRoom(const Attempt& attempt, bool undecided) {
  for (;;) {
    const bool asks = undecided && environment_.daemon->Daemon() != 0;
    const CUresult result = asks ? kAskAgain : attempt();
    if (result != CUDA_ERROR_OUT_OF_MEMORY || !Alive()) co_return result;
    gate_->FlushReports();
    takes_memory_ = true;
    RunCommands();
    takes_memory_ = false;
    co_await turns_.NextTurn();
    if (!Alive()) co_return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

// --- persistent memory ---------------------------------------------------------------------------

SimSession::Get<CUresult> SimSession::Allocate(uint64_t bytes) {
  for (;;) {
    const std::optional<wire::MemoryAnswer> answer =
        co_await Ask<wire::MemoryAnswer>(wire::MemoryNeeded{id_, bytes, 0});
    if (answer.has_value() && answer->result != 0) co_return static_cast<CUresult>(answer->result);
    if (!Alive()) co_return CUDA_ERROR_OUT_OF_MEMORY;
    if (!answer.has_value() && environment_.daemon->Daemon() != 0) continue;
    asked_bytes_ += bytes;
    const uint64_t address = program_->next_address;
    const Attempt map = [this, address, bytes] { return ranges_.Map(address, bytes); };
    const CUresult result = co_await WhenThereIsRoom(map, !answer.has_value());
    if (result == CUDA_SUCCESS) {
      program_->next_address += bytes;
      co_return result;
    }
    asked_bytes_ -= bytes;
    if (environment_.daemon->Daemon() != 0)
      environment_.daemon->Post(wire::MemoryFreed{id_, bytes});
    if (result != kAskAgain) co_return result;
  }
}

void SimSession::FreeRange() {
  if (ranges_.ranges().empty()) return;
  const uint64_t bytes = ranges_.Unmap(ranges_.ranges().begin()->first);
  program_->persistent_units -= bytes / kUnit;
  asked_bytes_ -= bytes;
  if (environment_.daemon->Daemon() != 0) environment_.daemon->Post(wire::MemoryFreed{id_, bytes});
}

// --- the lane ------------------------------------------------------------------------------------

CUresult SimSession::EnterLane() {
  if (inside_ || member_.lane() == 0) return CUDA_SUCCESS;
  const CUresult result = environment_.lanes->Enter(&member_);
  inside_ = result == CUDA_SUCCESS;
  if (inside_) scene_->Change();
  return result;
}

CUresult SimSession::EnterGrantedLane() {
  const uint64_t lane = member_.lane();
  const bool granted = wire::IsOwnLane(lane) ? !gate_->closed() : gate_->OpensInto(lane);
  const CUresult result = granted ? EnterLane() : CUDA_SUCCESS;
  return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
}

void SimSession::ExitLane() {
  if (std::exchange(inside_, false)) environment_.lanes->Exit(&member_);
}

void SimSession::ForsakeLane() {
  ExitLane();
  environment_.lanes->Leave(&member_);
}

CUresult SimSession::ChangeLane(uint64_t lane) {
  if (member_.lane() == lane) return CUDA_SUCCESS;
  ForsakeLane();
  scene_->Change();
  const CUresult result = environment_.lanes->Join(&member_, lane, 0);
  return result == CUDA_SUCCESS ? environment_.lanes->ReserveAgain(&member_, lane_.bytes) : result;
}

SimSession::Get<CUresult> SimSession::GrowInLane(uint64_t bytes) {
  if (bytes <= lane_.bytes && member_.lane() != 0) co_return CUDA_SUCCESS;
  CUresult result = kAskAgain;
  while (result == kAskAgain) result = co_await TryGrowInLane(bytes);
  lane_.answered = 0;
  if (result != CUDA_SUCCESS) co_return result;
  lane_.bytes = bytes;
  co_return EnterGrantedLane();
}

SimSession::Get<CUresult> SimSession::TryGrowInLane(uint64_t bytes) {
  const std::optional<wire::AssignLane> answer =
      co_await Ask<wire::AssignLane>(wire::LaneNeeded{id_, bytes, 0});
  CUresult result = CUDA_SUCCESS;
  if (!Alive()) co_return CUDA_ERROR_OUT_OF_MEMORY;
  if (answer.has_value()) {
    if (answer->result != 0) co_return static_cast<CUresult>(answer->result);
    lane_.answered = bytes;
    while (member_.lane() != lane_.told && (undone_ || in_flight_ != 0)) {
      if (!Alive()) co_return CUDA_ERROR_OUT_OF_MEMORY;
      co_await turns_.NextTurn();
    }
    result = ChangeLane(lane_.told);
  }
  const bool undecided = !answer.has_value();
  if (result == CUDA_SUCCESS) result = co_await WhenThereIsRoom(enter_, undecided);
  if (result != CUDA_SUCCESS) co_return result;
  const Attempt reserve = [this, bytes] {
    CUresult joined = CUDA_SUCCESS;
    if (member_.lane() == 0) joined = environment_.lanes->Join(&member_, wire::OwnLaneOf(id_), 0);
    return joined == CUDA_SUCCESS ? environment_.lanes->Reserve(&member_, bytes) : joined;
  };
  co_return co_await WhenThereIsRoom(reserve, undecided);
}

SimSession::Task SimSession::GiveLaneBack() {
  while (undone_ || in_flight_ != 0) {
    if (!Alive()) co_return;
    co_await turns_.NextTurn();
  }
  ForsakeLane();
  lane_.bytes = 0;
  program_->lane_units = 0;
  (void)co_await Ask<wire::AssignLane>(wire::LaneNeeded{id_, 0, 0});
}

// --- to the host and back ------------------------------------------------------------------------

bool SimSession::RunCommands() {
  if (commands_.empty()) return true;
  if (undone_ || in_flight_ != 0) return false;
  std::deque<std::function<void()>> commands;
  commands.swap(commands_);
  for (const std::function<void()>& command : commands) command();
  scene_->Change();
  return true;
}

// Whether it has gone.
bool SimSession::SwapOut(bool with_lane) {
  const bool may_go = !inside_ || !lane_.uses() || at_boundary_ || with_lane;
  if (program_->swapped().held || !may_go || takes_memory_ || !answers_.empty()) return false;
  if (!scene_->calm && scene_->dice.OneIn(10)) return false;  // the disk is full
  Swapped swapped{true, with_lane, {}};
  for (const std::pair<const uint64_t, worker::Extent>& range : ranges_.ranges())
    swapped.ranges.push_back({range.first, range.second.bytes});
  program_->SetOnHost(std::move(swapped));
  ranges_.UnmapAll();
  ForsakeLane();
  gate_->OnSwappedOut();
  lane_.away = true;
  lane_.saved = with_lane;
  lane_.when_back = 0;
  return true;
}

uint32_t SimSession::SwapIn(bool with_lane) {
  if (lane_.uses() && lane_.when_back != 0) (void)ChangeLane(lane_.when_back);
  uint32_t result = 0;
  if (with_lane) result = gate_->TakeLane() ? EnterLane() : CUDA_ERROR_OUT_OF_MEMORY;
  if (result == 0) result = ranges_.SwapIn();
  if (result != 0) {
    ForsakeLane();
    gate_->OnSwappedOut();
    return result;
  }
  for (const worker::Piece& part : environment_.lanes->Mapped(&member_)) {
    if (with_lane && live_tag_ != 0) (*tags_)[part.extent.id] = live_tag_;
  }
  gate_->OnSwappedIn();
  lane_.away = lane_.saved = false;
  return 0;
}

void SimSession::DoSwap(bool out, bool with_lane) {
  wire::Swapped swapped;
  swapped.session_id = id_;
  swapped.out = out;
  if (out) {
    swapped.result = SwapOut(with_lane) ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
  } else {
    swapped.result = SwapIn(with_lane);
  }
  (out ? going_out_ : coming_in_) = false;
  environment_.daemon->Post(swapped);
  PROTOCOL_SAY(scene_, "session %lu %s the host (%u)", id_, out ? "goes to" : "leaves",
               swapped.result);
}

}  // namespace protocol
