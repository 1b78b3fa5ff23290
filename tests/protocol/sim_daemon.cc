#include "tests/protocol/sim_daemon.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <utility>

namespace protocol {
namespace {

constexpr int64_t kYearS = 365 * 24 * 3600;
constexpr char kPeer[] = "a person";

ipc::Options OptionsFor(const SimDaemon::Settings& settings) {
  ipc::Options options;
  options.policy = settings.policy;
  options.runtime_dir = "/nonexistent";
  options.linger_s = kYearS;
  options.kill_timeout_s = 0;
  return options;
}

}  // namespace

SimDaemon::SimDaemon(Scene* scene, SimKeeper* keeper, const Settings& settings,
                     SimChildren::StartProcess start, std::function<void(uint32_t)> kill)
    : scene_(scene),
      loop_(&epoll_ctl, &VirtualNs),
      children_(scene, keeper, std::move(start), std::move(kill)) {
  control::Surroundings around;
  around.now_us = [scene] { return scene->now_us; };
  around.state_dir.clear();
  around.limits = settings.limits;
  daemon_ = std::make_unique<control::Daemon>(
      OptionsFor(settings), &loop_, &children_,
      [this](const std::string& failure) { ready_ = failure.empty(); }, around);
}

bool SimDaemon::Loop() {
  if (scene_->calm || scene_->dice.OneIn(3)) loop_.HandleReady();
  bool heard = false;
  loop_.HandleAsEvent([this, &heard] { heard = children_.HearOne(); });
  return heard;
}

void SimDaemon::OnKeeperReplaced() {
  loop_.HandleAsEvent([this] { children_.OnKeeperReplaced(); });
}

void SimDaemon::Hello(Program* program, const ipc::Hello& hello) {
  loop_.HandleAsEvent([this, program, &hello] {
    daemon_->OnHello(hello, {program->pid(), geteuid()}, program->Connect(), program->Pidfd());
  });
  scene_->Change();
}

void SimDaemon::Request(const control::Command& command) {
  loop_.HandleAsEvent([this, &command] { daemon_->OnRequest(kPeer, command); });
}

void SimDaemon::Upgrade() {
  control::Command command;
  command.name = "upgrade-worker";
  Request(command);
}

void SimDaemon::Pause(const Program& program, scheduler::Pause pause) {
  const control::Session* const session = SessionOf(program);
  if (session == nullptr) return;
  control::Command command;
  command.name = pause == scheduler::Pause::kNone     ? "resume"
                 : pause == scheduler::Pause::kPaused ? "pause"
                                                      : "evict";
  command.id = session->record.job.number;
  Request(command);
}

const control::Session* SimDaemon::SessionOf(const Program& program) const {
  for (const std::pair<const uint64_t, control::Session>& entry : sessions().all()) {
    if (entry.second.record.pid == program.pid()) return &entry.second;
  }
  return nullptr;
}

}  // namespace protocol
