// lanewayd's process in a simulated world: the real control::Daemon, over children that are no
// processes and in virtual time. It hears hellos, commands and children; nothing of it listens.
// Thread safety: one thread.
#pragma once

#include <memory>
#include <string>

#include "daemon/common/event_loop.h"
#include "daemon/control/daemon.h"
#include "tests/protocol/sim_children.h"

namespace protocol {

class SimDaemon {
 public:
  // How it decides.
  struct Settings {
    std::string policy;
    scheduler::Limits limits;
  };
  SimDaemon(Scene* scene, SimKeeper* keeper, const Settings& settings,
            SimChildren::StartProcess start, std::function<void(uint32_t)> kill);

  // A worker that runs already. Before Start().
  void AdoptWorker(uint32_t number, std::shared_ptr<Connection> connection) {
    children_.Adopt(number, std::move(connection));
  }
  void Start() { children_.Start(daemon_.get()); }
  // A turn of its loop: what a child said, or what the loop watches. False: no child has said
  // anything.
  bool Loop();
  void OnWorkerGone(uint32_t worker) { children_.OnProcessGone(worker); }
  void OnKeeperReplaced();

  void Hello(Program* program, const ipc::Hello& hello);
  void Upgrade();
  // Changes the pause of the program's job.
  void Pause(const Program& program, scheduler::Pause pause);

  // It has told its starter that a worker serves.
  bool ready() const { return ready_; }
  // It has ended itself, and refuses all programs.
  bool stopped() const { return daemon_->core().scheduler.stopped(); }
  bool serving() const { return daemon_->core().scheduler.serving(); }
  const scheduler::State& state() const { return daemon_->core().scheduler.state(); }
  const std::map<uint32_t, control::Worker>& workers() const { return children_.workers(); }
  const control::SessionTable& sessions() const { return daemon_->core().sessions; }
  // Null when it has none.
  const control::Session* SessionOf(const Program& program) const;

 private:
  void Request(const control::Command& command);

  Scene* const scene_;
  common::EventLoop loop_;
  SimChildren children_;
  std::unique_ptr<control::Daemon> daemon_;
  bool ready_ = false;
};

}  // namespace protocol
