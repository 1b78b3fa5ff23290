#include "tests/protocol/sim_in_process.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ipc/overloaded.h"

namespace protocol {

namespace wire = ipc::control;
using ipc::Turn;
using ipc::TurnEvent;

// --- the link ------------------------------------------------------------------------------------

ipc::Hello SimInProcess::Hello(uint64_t daemon) {
  ipc::Hello hello = program_->HelloOf();
  hello.session_id = session_id_;
  hello.session_seal = seal_;
  hello.held_bytes = held_bytes_ = used_bytes_;
  daemon_ = daemon;
  state_ = State::kGreeting;
  return hello;
}

void SimInProcess::Tell(const wire::ProgramToDaemon& message) {
  if (state_ != State::kUp) return;
  (void)wire::Send<wire::ProgramToDaemon>(program_->connection(), message);
  scene_->Change();
}

void SimInProcess::OnWelcome(const ipc::Packet& packet) {
  ipc::Welcome welcome;
  if (packet.bytes.size() != sizeof welcome) return;
  std::memcpy(&welcome, packet.bytes.data(), sizeof welcome);
  if (welcome.queued != 0) return;
  if (welcome.result != 0) {
    // A first hello that is refused ends the program; one that goes on asks again.
    if (session_id_ == 0) program_->Refuse();
    return OnDown();
  }
  session_id_ = welcome.session_id;
  seal_ = welcome.session_seal;
  page_ = common::SessionPageMap(packet.fds[0].get());
  OnUp();
}

void SimInProcess::OnUp() {
  state_ = State::kUp;
  idle_ = true;
  in_flight_granted_ = 0;
  Move(TurnEvent::kLaneLost);
  PROTOCOL_SAY(scene_, "program %d goes on as session %lu", program_->pid(), session_id_);
}

void SimInProcess::OnDown() {
  state_ = State::kAway;
  idle_ = true;
  asked_ = answered_ = refused_ = false;
  in_flight_granted_ = 0;
  Move(TurnEvent::kLaneLost);
  scene_->Change();
}

// One packet, or the end of the connection. False: neither.
bool SimInProcess::HearOne() {
  if (state_ == State::kAway) return false;
  if (state_ == State::kGreeting) {
    const absl::StatusOr<ipc::Packet> packet = ipc::ReceivePacket(program_->connection(), 0);
    if (absl::IsDeadlineExceeded(packet.status())) return false;
    scene_->Change();
    packet.ok() ? OnWelcome(*packet) : OnDown();
    return true;
  }
  const absl::StatusOr<wire::Received<wire::DaemonToProgram>> received =
      wire::Receive<wire::DaemonToProgram>(program_->connection(), 0);
  if (absl::IsDeadlineExceeded(received.status())) return false;
  scene_->Change();
  if (!received.ok()) {
    OnDown();
    return true;
  }
  std::visit(ipc::Overloaded{
                 [this](const wire::Grant& grant) {
                   lane_ = grant.lane;
                   Move(TurnEvent::kGrant);
                 },
                 [this](const wire::Revoke&) {
                   Move(TurnEvent::kRevoke);
                   if (idle_) LeaveLane();
                 },
                 [this](const wire::MemoryAnswer& answer) {
                   if (!asked_) return;
                   refused_ = answer.result != 0;
                   asked_ = false;
                   answered_ = true;
                 },
                 [](const wire::MemoryReply&) {},
             },
             received->message);
  return true;
}

// --- the gate ------------------------------------------------------------------------------------

// A lane that was handed over is reported free; one that was lost to another lanewayd is not.
void SimInProcess::Move(TurnEvent event) {
  const Turn before = std::exchange(turn_, ipc::Step(turn_, event));
  if (before != Turn::kDraining || event != TurnEvent::kDeviceDone) return;
  Tell(wire::Switched{lane_, session_id_, 0, scene_->now_us});
}

void SimInProcess::LeaveLane() {
  Move(TurnEvent::kClose);
  if (in_flight_ == 0) Move(TurnEvent::kDeviceDone);
}

bool SimInProcess::MayPass() {
  if (state_ != State::kUp) return true;
  if (std::exchange(idle_, false)) Tell(wire::GateReport{session_id_, wire::GateEvent::kRunnable});
  if (turn_ == Turn::kRevoked && (boundary_ || !program_->iterates)) LeaveLane();
  return ipc::MayWork(turn_);
}

void SimInProcess::FinishDeviceWork() {
  if (in_flight_ == 0) return;
  --in_flight_;
  in_flight_granted_ = std::min(in_flight_granted_, in_flight_);
  scene_->Change();
  if (in_flight_ == 0 && turn_ == Turn::kDraining) Move(TurnEvent::kDeviceDone);
}

void SimInProcess::ReportIdleIfSilent() {
  if (state_ != State::kUp || idle_ || in_flight_ != 0) return;
  if (!program_->ring.empty() && !asked_) return;
  idle_ = true;
  Tell(wire::GateReport{session_id_, wire::GateEvent::kIdle});
  if (turn_ == Turn::kRevoked) LeaveLane();
}

// --- the account ---------------------------------------------------------------------------------

bool SimInProcess::Take(uint64_t bytes) {
  if (state_ == State::kGreeting) return false;
  const uint64_t wanted = used_bytes_ + bytes;
  if (state_ == State::kUp && wanted > held_bytes_ && !answered_) {
    if (!asked_) Tell(wire::MemoryNeeded{session_id_, wanted - held_bytes_, 0});
    asked_ = true;
    return false;
  }
  answered_ = false;
  if (std::exchange(refused_, false)) return true;
  held_bytes_ = std::max(held_bytes_, wanted);
  used_bytes_ = wanted;
  return true;
}

void SimInProcess::Trim() {
  if (state_ != State::kUp || asked_ || answered_ || held_bytes_ == used_bytes_) return;
  Tell(wire::MemoryFreed{session_id_, held_bytes_ - used_bytes_});
  held_bytes_ = used_bytes_;
}

// --- the program ---------------------------------------------------------------------------------

void SimInProcess::ServeRing() {
  if (program_->ring.empty()) return;
  const Op op = program_->ring.front();
  switch (op.kind) {
    case Op::kBoundary:
      boundary_ = true;
      if (page_.get() != nullptr) page_.get()->progress.iterations.fetch_add(1);
      break;
    case Op::kWork:
      if (!MayPass()) return;
      boundary_ = false;
      ++in_flight_;
      if (state_ == State::kUp) ++in_flight_granted_;
      break;
    case Op::kAllocate:
      if (!Take(op.units * kUnit)) return;
      break;
    case Op::kFree:
      used_bytes_ -= std::min<uint64_t>(used_bytes_, kUnit);
      break;
    case Op::kLane:
    case Op::kLaneBack:
      break;  // its lane is no memory
  }
  program_->persistent_units = used_bytes_ / kUnit;
  program_->ring.pop_front();
  scene_->Change();
}

void SimInProcess::Step() {
  if (!program_->alive()) return;
  if (scene_->calm || scene_->dice.OneIn(2)) (void)HearOne();
  if (scene_->calm || scene_->dice.OneIn(3)) FinishDeviceWork();
  ServeRing();
  if (scene_->calm || scene_->dice.OneIn(3)) Trim();
  if (scene_->calm || scene_->dice.OneIn(3)) ReportIdleIfSilent();
}

std::string SimInProcess::Describe() const {
  const char* const state = state_ == State::kUp     ? "with a daemon"
                            : state_ == State::kAway ? "without a daemon"
                                                     : "says hello";
  return "program " + std::to_string(program_->pid()) + " in-process, session " +
         std::to_string(session_id_) + " " + state + " turn " +
         std::to_string(static_cast<int>(turn_)) + (idle_ ? " rests" : "") + " in flight " +
         std::to_string(in_flight_) + " has " + std::to_string(held_bytes_ / kUnit) + " ring " +
         std::to_string(program_->ring.size()) +
         (program_->ring.empty() ? "" : " first " + std::to_string(program_->ring.front().kind));
}

}  // namespace protocol
