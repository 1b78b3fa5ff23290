// People's commands that change what runs: policy, pause, resume, evict, limit. Each becomes an
// event for the scheduler; what follows is performed like anything else it decides.
#include "ipc/calls/vendor.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "daemon/control/command.h"
#include "daemon/control/daemon.h"
#include "daemon/control/status.h"

namespace control {

std::string Daemon::NoSuchJob(uint64_t id) const {
  return absl::StrCat("there is no job ", id, "; laneway ps lists them");
}

void Daemon::AnswerPolicy(const std::string& peer, const Command& command) {
  if (!command.text.empty()) {
    if (scheduler::FindPolicy(command.text) == nullptr) {
      control_.Reply(peer, ErrorJson(absl::StrCat("there is no policy ", command.text,
                                                  "; use one of ", scheduler::PolicyNames())));
      return;
    }
    scheduler_.Apply(scheduler::PolicyChanged{command.text});
    spdlog::info("the policy is {} now", scheduler_.state().policy->name());
    observers_.Note({.kind = EventKind::kPolicy}, scheduler_.state().policy->name());
  }
  control_.Reply(peer, DumpJson({{"ok", true},
                                 {"policy", scheduler_.state().policy->name()},
                                 {"policies", scheduler::PolicyNames()}}));
}

// The job's sessions that still run or wait.
std::vector<uint64_t> Daemon::SessionsOf(uint64_t job) const {
  std::vector<uint64_t> ids;
  for (const std::pair<const uint64_t, Session>& entry : sessions_.all()) {
    const Phase phase = entry.second.phase;
    if (entry.second.record.job.number == job && phase != Phase::kEnding && phase != Phase::kLost)
      ids.push_back(entry.first);
  }
  return ids;
}

// The sessions of a job that still run or wait. Replies, and returns none, when it has none.
std::vector<uint64_t> Daemon::SessionsToSteer(const std::string& peer, uint64_t job) {
  const std::vector<uint64_t> ids = SessionsOf(job);
  const auto is_of_it = [job](const std::pair<const uint64_t, Session>& entry) {
    return entry.second.record.job.number == job;
  };
  const std::map<uint64_t, Session>& all = sessions_.all();
  if (std::none_of(all.begin(), all.end(), is_of_it)) {
    control_.Reply(peer, ErrorJson(NoSuchJob(job)));
  } else if (ids.empty()) {
    control_.Reply(peer,
                   ErrorJson(absl::StrCat("job ", job, " has ended; nothing is left to steer")));
  }
  return ids;
}

void Daemon::Steer(uint64_t id, EventKind kind, const scheduler::Event& event,
                   const std::string& text) {
  spdlog::info("told to {} session {}", NameOf(kind), id);
  observers_.Note({.kind = kind, .session = id, .job = sessions_.Find(id)->record.job.number},
                  text);
  scheduler_.Apply(event);
}

// Before the scheduler: what it grants then comes to a gate that may open.
void Daemon::TellPause(uint64_t id, scheduler::Pause pause) {
  Session* const session = sessions_.Find(id);
  session->record.pause = pause;
  SendTo(*session, session->record);
}

void Daemon::AnswerPause(const std::string& peer, const Command& command) {
  const bool evict = command.name == "evict";
  const std::vector<uint64_t> ids = SessionsToSteer(peer, command.id);
  const bool fixed = std::any_of(ids.begin(), ids.end(),
                                 [this](uint64_t id) { return sessions_.Find(id)->in_process; });
  if (evict && fixed) {
    control_.Reply(peer, ErrorJson(absl::StrCat(
                             "job ", command.id,
                             " is in-process: its memory can't leave the device; pause it")));
    return;
  }
  for (const uint64_t id : ids) {
    TellPause(id, evict ? scheduler::Pause::kEvicted : scheduler::Pause::kPaused);
    Steer(id, evict ? EventKind::kEvict : EventKind::kPause, scheduler::Paused{id, evict});
  }
  if (!ids.empty()) control_.Reply(peer, OkJson());
}

void Daemon::AnswerResume(const std::string& peer, const Command& command) {
  const std::vector<uint64_t> ids = SessionsToSteer(peer, command.id);
  if (ids.empty()) return;
  const bool paused = std::any_of(ids.begin(), ids.end(), [this](uint64_t id) {
    const scheduler::Session* const known = scheduler_.state().Find(id);
    return known != nullptr && known->paused();
  });
  if (!paused) {
    control_.Reply(peer, ErrorJson(absl::StrCat("job ", command.id, " is not paused")));
    return;
  }
  for (const uint64_t id : ids) {
    TellPause(id, scheduler::Pause::kNone);
    Steer(id, EventKind::kResume, scheduler::Resumed{id});
  }
  control_.Reply(peer, OkJson());
}

void Daemon::AnswerLimit(const std::string& peer, const Command& command) {
  const std::vector<uint64_t> ids = SessionsToSteer(peer, command.id);
  if (ids.empty()) return;
  ipc::JobTerms terms = sessions_.Find(ids[0])->record.job;
  terms.memory_limit_bytes = command.bytes;
  ChangeJob(terms);
  control_.Reply(peer, OkJson());
}

// For its sessions that run or wait, and for those that will come.
void Daemon::ChangeJob(const ipc::JobTerms& terms) {
  jobs_.Change(terms);
  const std::vector<uint64_t> ids = SessionsOf(terms.number);
  const int64_t bytes =
      static_cast<int64_t>(std::min<uint64_t>(terms.memory_limit_bytes, scheduler::kUnlimited));
  for (const uint64_t id : ids) {
    // Each of its sessions gets an equal part: a job of one session, all of it.
    const int64_t part = bytes / static_cast<int64_t>(ids.size());
    const Session* const known = sessions_.Find(id);
    if (known == nullptr) continue;
    const ipc::JobTerms before = known->record.job;
    if (before.scheduling != terms.scheduling) TellTerms(id, terms.scheduling);
    if (before.scheduling == terms.scheduling ||
        before.memory_limit_bytes != terms.memory_limit_bytes) {
      Steer(id, EventKind::kLimit, scheduler::LimitChanged{id, part}, absl::StrCat(part, " bytes"));
    }
    // The worker holds the job to the whole of it, and every query tells of it.
    Session* const session = sessions_.Find(id);
    if (session == nullptr) continue;
    session->record.job = terms;
    SendTo(*session, session->record);
  }
}

}  // namespace control
