// A program in-process in a simulated world: for lanewayd the worker of one session, over the real
// socket of its hello. A model of shim/inprocess/ (gate, account, link) over the real machine of
// turns, which gives its turn away where a thread of the program would sleep. Without a lanewayd it
// runs on, and says hello to the next one. Thread safety: one thread.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/common/session_page.h"
#include "ipc/control.h"
#include "ipc/hello.h"
#include "ipc/socket.h"
#include "ipc/turn.h"
#include "tests/protocol/program.h"
#include "tests/protocol/scene.h"

namespace protocol {

class SimInProcess {
 public:
  // Both outlive this object.
  SimInProcess(Scene* scene, Program* program) : scene_(scene), program_(program) {}
  SimInProcess(const SimInProcess&) = delete;

  // Its threads and its device, until they would sleep.
  void Step();
  // There is no lanewayd for it, and it has said hello to none: hello() goes to the next one.
  bool seeks_daemon() const { return program_->alive() && state_ == State::kAway; }
  // Says hello. `daemon`: its number in this world.
  ipc::Hello Hello(uint64_t daemon);

  Program* program() const { return program_; }
  // It runs by a grant of this lanewayd. A program that has ended took its context along.
  bool Uses(uint64_t daemon) const {
    return program_->alive() && IsUp(daemon) && in_flight_granted_ != 0;
  }
  bool IsUp(uint64_t daemon) const { return state_ == State::kUp && daemon_ == daemon; }
  bool Holds() const { return ipc::HoldsLane(turn_); }
  uint64_t session_id() const { return session_id_; }
  uint64_t lane() const { return lane_; }
  uint64_t held_bytes() const { return held_bytes_; }
  std::string Describe() const;

 private:
  enum class State { kAway, kGreeting, kUp };

  // --- the link
  bool HearOne();
  void OnWelcome(const ipc::Packet& packet);
  void OnUp();
  void OnDown();
  void Tell(const ipc::control::ProgramToDaemon& message);
  // --- the gate
  bool MayPass();
  void Move(ipc::TurnEvent event);
  void LeaveLane();
  void ReportIdleIfSilent();
  void FinishDeviceWork();
  // --- the account
  bool Take(uint64_t bytes);  // false: it is not decided yet
  void Trim();

  void ServeRing();

  Scene* const scene_;
  Program* const program_;
  State state_ = State::kAway;
  uint64_t daemon_ = 0;
  uint64_t session_id_ = 0;
  ipc::Mac seal_ = {};
  common::SessionPageMap page_;
  ipc::Turn turn_ = ipc::Turn::kOutside;
  uint64_t lane_ = 0;
  bool idle_ = true;
  bool boundary_ = false;  // the next operation begins an iteration
  bool asked_ = false;     // for memory
  bool answered_ = false;  // and the program has yet to read it
  bool refused_ = false;
  int in_flight_ = 0;          // operations on the device
  int in_flight_granted_ = 0;  // of these, by the grant that holds
  uint64_t used_bytes_ = 0;
  uint64_t held_bytes_ = 0;  // what lanewayd counts
};

}  // namespace protocol
