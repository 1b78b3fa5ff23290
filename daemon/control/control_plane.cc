#include "daemon/control/control_plane.h"

#include <spdlog/spdlog.h>

#include "daemon/control/status.h"
#include "ipc/runtime_dir.h"

namespace control {

ControlPlane::ControlPlane(Core* core, Host* host)
    : core_(core),
      host_(host),
      commands_(core->loop),
      job_commands_({&core->sessions, &core->jobs, &core->scheduler, &core->observers}),
      run_commands_(
          {core->children, &core->sessions, &core->jobs, &core->observers, &job_commands_}),
      views_({&core->options, core->children, &core->sessions, &core->scheduler.state(),
              &core->observers},
             core->now_us),
      call_traces_({&core->sessions, core->loop, core->now_us}),
      upgrade_({core->children, &core->sessions, &core->scheduler, &commands_}),
      metrics_(core->loop, [this] { return views_.Metrics(); }) {
  SetUpViews();
  SetUpChanges();
}

absl::Status ControlPlane::Listen() {
  const ipc::Options& options = core_->options;
  const absl::Status bound = commands_.Listen(ipc::ControlEndpoint(options.runtime_dir));
  if (!bound.ok() || options.metrics_port == 0) return bound;
  return metrics_.Listen(static_cast<uint16_t>(options.metrics_port));
}

void ControlPlane::SetUpViews() {
  const auto fresh = [this](std::string (Views::*view)() const) {
    return [this, view](const std::string& peer, const Command&) {
      core_->children->RefreshUsage(
          [this, peer, view] { commands_.Reply(peer, (views_.*view)()); });
    };
  };
  commands_.OnLater("status", fresh(&Views::Status));
  commands_.OnLater("top", fresh(&Views::Top));
  commands_.On("journal", [this](const Command& asked) { return views_.Journal(asked.after); });
  commands_.On("trace", [this](const Command& asked) { return call_traces_.Do(asked); });
  commands_.On("why", [this](const Command& asked) { return views_.Why(asked.id); });
}

void ControlPlane::SetUpChanges() {
  const auto job = [this](std::string (JobCommands::*change)(const Command& command)) {
    return [this, change](const Command& command) { return (job_commands_.*change)(command); };
  };
  commands_.On("policy", job(&JobCommands::Policy));
  commands_.On("pause", job(&JobCommands::Pause));
  commands_.On("evict", job(&JobCommands::Pause));
  commands_.On("evict-idle", job(&JobCommands::Dismiss));
  commands_.On("resume", job(&JobCommands::Resume));
  commands_.On("limit", job(&JobCommands::Limit));
  commands_.On("share", job(&JobCommands::Terms));
  commands_.On("priority", job(&JobCommands::Terms));
  commands_.OnLater(
      "job", [this](const std::string& peer, const Command& command) { BeginRun(peer, command); });
  commands_.On("exited", [this](const Command& command) { return run_commands_.Exited(command); });
  commands_.OnLater("upgrade-worker",
                    [this](const std::string& peer, const Command&) { upgrade_.Begin(peer); });
  commands_.OnLater("stop", [this](const std::string& peer, const Command& command) {
    stop_waiters_.push_back(peer);  // before: the end may come at once
    const std::string refusal = host_->OnStopAsked(command.force);
    if (refusal.empty()) return;
    stop_waiters_.pop_back();
    commands_.Reply(peer, ErrorJson(refusal));
  });
}

void ControlPlane::BeginRun(const std::string& peer, const Command& command) {
  if (core_->scheduler.serving()) {
    commands_.Reply(peer, run_commands_.Begin(command));
  } else {  // which device there is, is not known yet
    waiting_runs_.emplace_back(peer, command);
  }
}

void ControlPlane::OnServing() {
  for (const auto& [peer, command] : std::exchange(waiting_runs_, {})) BeginRun(peer, command);
}

void ControlPlane::OnFailure(const std::string& sentence) {
  for (const auto& [peer, command] : std::exchange(waiting_runs_, {}))
    commands_.Reply(peer, ErrorJson(sentence));
}

void ControlPlane::OnStopped() {
  for (const std::string& peer : std::exchange(stop_waiters_, {})) commands_.Reply(peer, OkJson());
}

}  // namespace control
