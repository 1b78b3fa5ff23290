// A worker's process in a simulated world: the control loop's part (daemon/worker/control.cc) with
// the real board and lane table. Thread safety: one thread.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "daemon/worker/gate.h"
#include "daemon/worker/lanes.h"
#include "tests/protocol/sim_memory.h"
#include "tests/protocol/sim_session.h"

namespace protocol {

// One daemon's socket to one worker. What a daemon that is no more has said is still heard.
struct Connection {
  std::deque<ipc::control::DaemonToWorker> to_worker;
  std::deque<ipc::control::WorkerToDaemon> to_daemon;
  bool daemon_gone = false;
  bool worker_gone = false;
};

class SimWorker : public worker::DaemonLink {
 public:
  // `own`: of one session that shares it with no other.
  SimWorker(Scene* scene, SimKeeper* keeper, SimDevice* device, uint32_t number, bool own,
            std::map<uint64_t, uint64_t>* tags);
  ~SimWorker() override;  // the process is gone, and with it what it has mapped

  // `greets`: its own daemon has started it; else a later one asks.
  void Connect(std::shared_ptr<Connection> connection, bool greets);
  // A turn of its control loop: one message, the outbox, or a program that has ended. False: there
  // is nothing to do.
  bool Loop();
  bool StepSession();  // of one that chance chooses
  bool StepAll();      // each session's thread and the device, once
  bool FinishDeviceWork();

  void Post(const ipc::control::WorkerToDaemon& message) override;
  uint64_t Daemon() const override { return daemon_; }

  uint32_t number() const { return number_; }
  // It was told to stop, and nobody needs it any more.
  bool exits() const { return stopping_ && sessions_.empty() && outbox_.empty(); }
  const std::map<uint64_t, std::unique_ptr<SimSession>>& sessions() const { return sessions_; }
  // It was told to shrink the lane, and a session of it is inside still.
  bool OwesShrink(uint64_t lane) const;
  // A message between lanewayd and this worker brings the files of this program.
  bool SpeaksOf(pid_t pid) const;
  worker::GateView View(uint64_t session) const { return board_.View(session); }

 private:
  void SetDaemon(bool present);
  void Handle(Connection* connection, const ipc::control::DaemonToWorker& message);
  bool Hear(size_t connection);
  void FlushOutbox();
  void Greet(Connection* connection);
  void AnswerQuery(Connection* connection);
  void Attach(const ipc::control::SessionRecord& record);
  void Decide(uint64_t session, const worker::Decision& decision);
  bool TryResize(const ipc::control::ResizeLane& size);
  bool NoteEnds();
  bool FollowKeeper();
  SimSession* Find(uint64_t session);
  SimSession* Any();

  Scene* const scene_;
  SimDevice& device_;
  const uint32_t number_;
  const bool own_;
  std::map<uint64_t, uint64_t>* const tags_;
  WorkerExtents extents_;
  worker::Environment environment_;
  worker::Board board_;
  worker::LaneTable lanes_;
  std::map<uint64_t, std::unique_ptr<SimSession>> sessions_;
  std::map<uint64_t, ipc::control::SessionRecord> records_;
  std::vector<std::shared_ptr<Connection>> connections_;
  std::deque<ipc::control::WorkerToDaemon> outbox_;
  std::vector<ipc::control::ResizeLane> resizes_;  // until the last one has left the lane
  bool stopping_ = false;
  bool follows_keeper_ = false;  // it hands its memory over
  uint64_t daemon_ = 0;
  uint64_t daemons_ = 0;
};

}  // namespace protocol
