// People's commands, by way of the control plane: what `laneway` asks, and the answers.
//
//     status   what runs (status.h)          job      a new run: its number, its job's ticket
//     top      live figures (status.h)       journal  what happened lately, in parts
//     why      what a job, or each, waits for policy, pause, resume, evict, limit: steer.cc
//                                            share, priority: terms.cc
//     exited   how a job that `laneway run` started has ended
//     stop     end everything; refused while programs live, unless forced
#include "ipc/calls/vendor.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/control/command.h"
#include "daemon/control/daemon.h"
#include "daemon/control/live.h"
#include "daemon/control/metrics.h"
#include "daemon/control/status.h"
#include "ipc/job_options.h"
#include "ipc/socket.h"
#include "scheduler/why.h"

namespace control {
namespace {

constexpr size_t kJournalPart = 2000;  // events of one answer: within ipc::kControlTextBytesMax

// Takes the memory limit that `laneway run` gave. Without one the job keeps its limit.
void TakeAttributes(const Command& command, ipc::JobTerms* terms) {
  if (command.bytes != 0) terms->memory_limit_bytes = command.bytes;
}

}  // namespace

void Daemon::OnControl() {
  ipc::ControlServer::Request request;
  while (control_.Next(&request)) Answer(request);
}

// ZeroMQ's edge may have passed while we replied later than at once.
void Daemon::ReplyLater(const std::string& peer, const std::string& text) {
  control_.Reply(peer, text);
  loop_->After(0, [this] { OnControl(); });
}

void Daemon::AnswerStatus(const std::string& peer, const Command&) {
  children_->RefreshUsage([this, peer] {
    ReplyLater(peer, StatusJson({options_, scheduler_.state().policy->name(), *children_, sessions_,
                                 observers_.faults()}));
  });
}

TopInput Daemon::LiveInput() const {
  return {*children_, sessions_, scheduler_.state(), observers_.watch(), NowUs()};
}

void Daemon::AnswerTop(const std::string& peer, const Command&) {
  children_->RefreshUsage([this, peer] {
    observers_.Sample();
    ReplyLater(peer, TopJson(LiveInput()));
  });
}

std::string Daemon::Metrics() {
  observers_.Sample();
  return MetricsText(LiveInput(), observers_.faults_seen(), observers_.journal());
}

void Daemon::AnswerJournal(const std::string& peer, const Command& command) {
  observers_.Sample();
  control_.Reply(peer, JournalJson(observers_.journal(), command.after, kJournalPart));
}

// A run that a program of another run starts is a part of that one's job; what it gives is the
// whole job's.
void Daemon::AnswerJob(const std::string& peer, const Command& command) {
  if (!scheduler_.serving()) {  // which device there is, is not known yet
    waiting_jobs_.emplace_back(peer, command);
    return;
  }
  const ipc::JobTicket shown = ipc::ParseTicketUntrusted(command.ticket).value_or(ipc::JobTicket());
  const std::optional<ipc::JobTerms> outer = jobs_.Join(shown);
  ipc::JobTerms terms = outer.value_or(ipc::JobTerms());
  TakeAttributes(command, &terms);
  uint64_t run = 0;
  if (!outer.has_value()) {
    terms.scheduling = command.scheduling;
    if (const absl::Status chosen = ChooseDevices(DeviceLoads(), &terms.scheduling); !chosen.ok()) {
      ReplyLater(peer, ErrorJson(std::string(chosen.message())));
      return;
    }
    terms = jobs_.New(terms);
    run = terms.number;
  } else {
    run = jobs_.NewNumber();  // its own in the history
    if (terms != *outer) ChangeJob(terms);
  }
  absl::StatusOr<ipc::UniqueFd> process = ipc::OpenPidfd(static_cast<pid_t>(command.pid));
  if (command.pid != 0 && process.ok()) observers_.Launched(run, command.text, std::move(*process));
  ReplyLater(peer, JobJson(run, jobs_.TicketOf(terms), children_->keeper().description.kind));
}

void Daemon::AnswerWaitingJobs(const std::string& failure) {
  for (const auto& [peer, command] : std::exchange(waiting_jobs_, {})) {
    if (failure.empty()) {
      AnswerJob(peer, command);
    } else {
      control_.Reply(peer, ErrorJson(failure));
    }
  }
}

void Daemon::AnswerExited(const std::string& peer, const Command& command) {
  observers_.Exited(command.id, static_cast<int>(std::min<uint64_t>(command.code, 255)));
  UpdateLinger();
  control_.Reply(peer, OkJson());
}

void Daemon::AnswerWhy(const std::string& peer, const Command& command) {
  nlohmann::ordered_json sessions = nlohmann::ordered_json::array();
  for (const std::pair<const uint64_t, Session>& entry : sessions_.all()) {
    const ipc::control::SessionRecord& record = entry.second.record;
    if (command.id != 0 && record.job.number != command.id) continue;
    sessions.push_back({{"job", record.job.number},
                        {"session", entry.first},
                        {"program", record.program},
                        {"terms", ipc::TermsJson(record.job.scheduling)},
                        {"why", WhyOf(entry.second)}});
  }
  if (sessions.empty() && command.id != 0) {
    control_.Reply(peer, ErrorJson(NoSuchJob(command.id)));
    return;
  }
  control_.Reply(peer, DumpJson({{"ok", true}, {"job", command.id}, {"sessions", sessions}}));
}

std::string Daemon::WhyOf(const Session& session) const {
  switch (session.phase) {
    case Phase::kWaiting:
    case Phase::kAttaching:
      return "waits for its worker, which is starting";
    case Phase::kMoving:
    case Phase::kEntering:
      return "moves to another worker, which is starting";
    case Phase::kEnding:
      return "has ended; its worker gives back what it held";
    case Phase::kLost:
      return "lost its worker; start the program again";
    default:  // the scheduler's to say
      break;
  }
  const std::string why =
      scheduler::Sentence(scheduler::Why(scheduler_.state(), session.record.session_id, NowUs()));
  if (session.refusal.empty()) return why;
  return absl::StrCat(why, "; its last request for memory was refused: ", session.refusal);
}

std::string Daemon::StopRefusal(bool force) {
  const size_t alive = sessions_.CountAlive();
  if (alive == 0 || force) return {};
  return absl::StrCat(alive, alive == 1 ? " program is" : " programs are",
                      " still running (laneway ps); wait for them or use laneway stop --force");
}

void Daemon::AnswerStop(const std::string& peer, const Command& command) {
  NoticeEnding();
  const std::string refusal = StopRefusal(command.force);
  if (!refusal.empty()) {
    control_.Reply(peer, ErrorJson(refusal));
    return;
  }
  spdlog::info("told to stop{}", command.force ? " (forced)" : "");
  stop_waiters_.push_back(peer);
  StopEverything();
}

void Daemon::Answer(const ipc::ControlServer::Request& request) {
  using Handler = void (Daemon::*)(const std::string& peer, const Command& command);
  static const std::map<std::string, Handler>* const handlers =
      new std::map<std::string, Handler>{{"status", &Daemon::AnswerStatus},
                                         {"top", &Daemon::AnswerTop},
                                         {"journal", &Daemon::AnswerJournal},
                                         {"job", &Daemon::AnswerJob},
                                         {"exited", &Daemon::AnswerExited},
                                         {"policy", &Daemon::AnswerPolicy},
                                         {"why", &Daemon::AnswerWhy},
                                         {"pause", &Daemon::AnswerPause},
                                         {"evict", &Daemon::AnswerPause},
                                         {"resume", &Daemon::AnswerResume},
                                         {"limit", &Daemon::AnswerLimit},
                                         {"share", &Daemon::AnswerTerms},
                                         {"priority", &Daemon::AnswerTerms},
                                         {"stop", &Daemon::AnswerStop},
                                         {"upgrade-worker", &Daemon::AnswerUpgrade}};
  Command command;
  if (!ParseCommandUntrusted(request.text, &command)) {
    control_.Reply(request.peer, ErrorJson("that is no command of this version of Laneway"));
    return;
  }
  const std::map<std::string, Handler>::const_iterator found = handlers->find(command.name);
  if (found != handlers->end()) {
    (this->*found->second)(request.peer, command);
    return;
  }
  control_.Reply(request.peer,
                 ErrorJson(absl::StrCat("this daemon (", LANEWAY_VERSION, ") knows no command '",
                                        command.name, "'; run laneway stop and start it again")));
}

}  // namespace control
