// Which part answers which of people's commands; stop and upgrade-worker are answered later.
#include <spdlog/spdlog.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/control/daemon.h"
#include "daemon/control/status.h"

namespace control {

void Daemon::SetUpCommands() {
  const auto fresh = [this](std::string (Views::*view)() const) {
    return [this, view](const std::string& peer, const Command&) {
      children_->RefreshUsage([this, peer, view] { commands_.Reply(peer, (views_.*view)()); });
    };
  };
  const auto job = [this](std::string (JobCommands::*change)(const Command& command)) {
    return [this, change](const Command& command) { return (job_commands_.*change)(command); };
  };
  commands_.OnLater("status", fresh(&Views::Status));
  commands_.OnLater("top", fresh(&Views::Top));
  commands_.On("journal", [this](const Command& asked) { return views_.Journal(asked.after); });
  commands_.On("why", [this](const Command& asked) { return views_.Why(asked.id); });
  commands_.On("policy", job(&JobCommands::Policy));
  commands_.On("pause", job(&JobCommands::Pause));
  commands_.On("evict", job(&JobCommands::Pause));
  commands_.On("resume", job(&JobCommands::Resume));
  commands_.On("limit", job(&JobCommands::Limit));
  commands_.On("share", job(&JobCommands::Terms));
  commands_.On("priority", job(&JobCommands::Terms));
  commands_.On("exited", [this](const Command& command) {
    std::string answer = run_commands_.Exited(command);
    UpdateLinger();
    return answer;
  });
  commands_.OnLater(
      "job", [this](const std::string& peer, const Command& command) { AnswerJob(peer, command); });
  commands_.OnLater("stop", [this](const std::string& peer, const Command& command) {
    AnswerStop(peer, command);
  });
  commands_.OnLater("upgrade-worker",
                    [this](const std::string& peer, const Command&) { UpgradeWorkers(peer); });
}

void Daemon::AnswerJob(const std::string& peer, const Command& command) {
  if (scheduler_.serving()) {
    commands_.Reply(peer, run_commands_.Begin(command));
  } else {  // which device there is, is not known yet
    waiting_jobs_.emplace_back(peer, command);
  }
}

void Daemon::AnswerWaitingJobs(const std::string& failure) {
  for (const auto& [peer, command] : std::exchange(waiting_jobs_, {})) {
    if (failure.empty()) {
      AnswerJob(peer, command);
    } else {
      commands_.Reply(peer, ErrorJson(failure));
    }
  }
}

void Daemon::AnswerStop(const std::string& peer, const Command& command) {
  NoticeEnding();
  const size_t alive = sessions_.CountAlive();
  if (alive != 0 && !command.force) {
    commands_.Reply(peer,
                    ErrorJson(absl::StrCat(
                        alive, alive == 1 ? " program is" : " programs are",
                        " still running (laneway ps); wait for them or use laneway stop --force")));
    return;
  }
  spdlog::info("told to stop{}", command.force ? " (forced)" : "");
  stop_waiters_.push_back(peer);
  StopEverything();
}

}  // namespace control
