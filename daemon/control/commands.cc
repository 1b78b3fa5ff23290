// People's commands, by way of the control plane: what `laneway` asks, and the answers.
//
//     status   what runs (status.h)          job    a number for a new job
//     stop     end everything; refused while programs live, unless forced
#include "ipc/calls/vendor.h"

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "daemon/control/daemon.h"
#include "daemon/control/status.h"

namespace control {

void Daemon::OnControl() {
  ipc::ControlServer::Request request;
  while (control_.Next(&request)) Answer(request);
}

void Daemon::AnswerStatus(const std::string& peer) {
  children_.RefreshUsage([this, peer] {
    control_.Reply(peer, StatusJson({options_, children_, sessions_, faults_}));
    // ZeroMQ's edge may have passed while we replied.
    loop_.After(0, [this] { OnControl(); });
  });
}

std::string Daemon::StopCommand(bool force) {
  const size_t alive = sessions_.CountAlive();
  if (alive == 0 || force) return {};
  return absl::StrCat(alive, alive == 1 ? " program is" : " programs are",
                      " still running (laneway ps); wait for them or use laneway stop --force");
}

void Daemon::Answer(const ipc::ControlServer::Request& request) {
  Command command;
  if (!ParseCommandUntrusted(request.text, &command)) {
    control_.Reply(request.peer, ErrorJson("that is no command of this version of Laneway"));
  } else if (command.name == "status") {
    AnswerStatus(request.peer);
  } else if (command.name == "job") {
    control_.Reply(request.peer, JobJson(sessions_.NewJob(), children_.keeper().description.kind));
  } else if (command.name == "stop") {
    NoticeEnding();
    const std::string refusal = StopCommand(command.force);
    if (!refusal.empty()) {
      control_.Reply(request.peer, ErrorJson(refusal));
      return;
    }
    spdlog::info("told to stop{}", command.force ? " (forced)" : "");
    stop_waiters_.push_back(request.peer);
    StopEverything();
  } else {
    control_.Reply(request.peer,
                   ErrorJson(absl::StrCat("this daemon (", LANEWAY_VERSION, ") knows no command '",
                                          command.name, "'; run laneway stop and start it again")));
  }
}

}  // namespace control
