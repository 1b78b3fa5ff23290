#include "daemon/control/job_commands.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/control/session_link.h"
#include "daemon/control/status.h"

namespace control {

std::string NoSuchJob(uint64_t job) {
  return absl::StrCat("there is no job ", job, "; laneway ps lists them");
}

std::vector<uint64_t> JobCommands::SessionsOf(uint64_t job) const {
  std::vector<uint64_t> ids;
  for (const std::pair<const uint64_t, Session>& entry : parts_.sessions->all()) {
    const Phase phase = entry.second.phase;
    if (entry.second.record.job.number == job && phase != Phase::kEnding && phase != Phase::kLost)
      ids.push_back(entry.first);
  }
  return ids;
}

std::string JobCommands::NoSessionToChange(uint64_t job) const {
  const std::map<uint64_t, Session>& all = parts_.sessions->all();
  const bool known = std::any_of(all.begin(), all.end(), [job](const auto& entry) {
    return entry.second.record.job.number == job;
  });
  return ErrorJson(known ? absl::StrCat("job ", job, " has ended; nothing is left to steer")
                         : NoSuchJob(job));
}

void JobCommands::Apply(uint64_t session, EventKind kind, const scheduler::Event& event,
                        const std::string& text) {
  spdlog::info("told to {} session {}", NameOf(kind), session);
  const uint64_t job = parts_.sessions->Find(session)->record.job.number;
  parts_.observers->Note({.kind = kind, .session = session, .job = job}, text);
  parts_.scheduler->Apply(event);
}

// Before the scheduler's event: a grant that the event causes must not meet a gate that is paused.
void JobCommands::SendPause(uint64_t session, scheduler::Pause pause) {
  Session* const known = parts_.sessions->Find(session);
  known->record.pause = pause;
  known->link->Send(*known, known->record);
}

std::string JobCommands::Policy(const Command& command) {
  const scheduler::State& state = parts_.scheduler->state();
  if (!command.text.empty()) {
    if (scheduler::FindPolicy(command.text) == nullptr) {
      return ErrorJson(absl::StrCat("there is no policy ", command.text, "; use one of ",
                                    scheduler::PolicyNames()));
    }
    parts_.scheduler->Apply(scheduler::PolicyChanged{command.text});
    spdlog::info("the policy is {} now", state.policy->name());
    parts_.observers->Note({.kind = EventKind::kPolicy}, state.policy->name());
  }
  return DumpJson(
      {{"ok", true}, {"policy", state.policy->name()}, {"policies", scheduler::PolicyNames()}});
}

std::string JobCommands::Pause(const Command& command) {
  const bool evict = command.name == "evict";
  const std::vector<uint64_t> ids = SessionsOf(command.id);
  if (ids.empty()) return NoSessionToChange(command.id);
  if (const std::string fixed = WhyFixed(command.id, ids); evict && !fixed.empty()) return fixed;
  for (const uint64_t id : ids) {
    SendPause(id, evict ? scheduler::Pause::kEvicted : scheduler::Pause::kPaused);
    Apply(id, evict ? EventKind::kEvict : EventKind::kPause, scheduler::Paused{id, evict});
  }
  return OkJson();
}

std::string JobCommands::WhyFixed(uint64_t job, const std::vector<uint64_t>& sessions) const {
  const bool fixed = std::any_of(sessions.begin(), sessions.end(), [this](uint64_t id) {
    return !parts_.sessions->Find(id)->link->CanMakeRoom();
  });
  if (!fixed) return "";
  return ErrorJson(
      absl::StrCat("job ", job, " is in-process: its memory can't leave the device; pause it"));
}

// All of the job's sessions or none: one that works would soon call the others back.
std::string JobCommands::Dismiss(const Command& command) {
  const std::vector<uint64_t> ids = SessionsOf(command.id);
  if (ids.empty()) return NoSessionToChange(command.id);
  if (const std::string fixed = WhyFixed(command.id, ids); !fixed.empty()) return fixed;
  const scheduler::State& state = parts_.scheduler->state();
  std::vector<uint64_t> on_device;
  for (const uint64_t id : ids) {
    const auto known = state.sessions.find(id);
    if (known == state.sessions.end() || !known->second.on_device()) continue;
    if (!scheduler::MayLeave(state, known->second)) {
      return ErrorJson(absl::StrCat(
          "job ", command.id, " works, or the host memory for it (--swap) is used up; laneway ",
          "why ", command.id, " tells, and laneway evict ", command.id, " pauses it"));
    }
    on_device.push_back(id);
  }
  for (const uint64_t id : on_device)
    Apply(id, EventKind::kEvict, scheduler::Dismissed{id}, "until it has work");
  return OkJson();
}

// The record says whether a session is paused: while lanewayd adopts, the scheduler has yet to hear
// of a pause that was typed a moment ago.
std::string JobCommands::Resume(const Command& command) {
  const std::vector<uint64_t> ids = SessionsOf(command.id);
  if (ids.empty()) return NoSessionToChange(command.id);
  const bool paused = std::any_of(ids.begin(), ids.end(), [this](uint64_t id) {
    return parts_.sessions->Find(id)->record.pause != scheduler::Pause::kNone;
  });
  if (!paused) return ErrorJson(absl::StrCat("job ", command.id, " is not paused"));
  for (const uint64_t id : ids) {
    SendPause(id, scheduler::Pause::kNone);
    Apply(id, EventKind::kResume, scheduler::Resumed{id});
  }
  return OkJson();
}

std::string JobCommands::Limit(const Command& command) {
  const std::vector<uint64_t> ids = SessionsOf(command.id);
  if (ids.empty()) return NoSessionToChange(command.id);
  ipc::JobTerms terms = parts_.sessions->Find(ids[0])->record.job;
  terms.memory_limit_bytes = command.bytes;
  Change(terms);
  return OkJson();
}

// A job whose first session is yet to come has its new terms then.
std::string JobCommands::Terms(const Command& command) {
  const bool share = command.name == "share";
  const std::optional<ipc::JobTerms> begun = parts_.jobs->Find(command.id);
  const bool waited_for = begun.has_value() && parts_.observers->history().IsOpen(command.id);
  const std::vector<uint64_t> ids = SessionsOf(command.id);
  if (ids.empty() && !waited_for) return NoSessionToChange(command.id);
  ipc::JobTerms terms = begun.has_value() ? *begun : parts_.sessions->Find(ids[0])->record.job;
  const uint32_t value = static_cast<uint32_t>(std::min<uint64_t>(command.value, UINT32_MAX));
  (share ? terms.scheduling.weight : terms.scheduling.priority) = value;
  if (!ipc::SanitizeTerms(&terms.scheduling)) {
    return ErrorJson(share ? absl::StrCat("a weight is 1 to ", ipc::kWeightMax)
                           : absl::StrCat("a priority is 0 (most urgent) to ", ipc::kPriorityMax));
  }
  Change(terms);
  return OkJson();
}

void JobCommands::Change(const ipc::JobTerms& terms) {
  parts_.jobs->Change(terms);
  const std::vector<uint64_t> ids = SessionsOf(terms.number);
  const int64_t bytes =
      static_cast<int64_t>(std::min<uint64_t>(terms.memory_limit_bytes, scheduler::kUnlimited));
  const ipc::SchedulingTerms& asked = terms.scheduling;
  for (const uint64_t id : ids) {
    // Each of its sessions gets an equal part: a job of one session, all of it.
    const int64_t part = bytes / static_cast<int64_t>(ids.size());
    const Session* const known = parts_.sessions->Find(id);
    if (known == nullptr) continue;
    const ipc::JobTerms before = known->record.job;
    if (before.scheduling != asked) {
      Apply(id, EventKind::kTerms,
            scheduler::TermsChanged{id, asked.priority, asked.weight,
                                    static_cast<int64_t>(asked.deadline_us)},
            absl::StrCat("priority ", asked.priority, ", weight ", asked.weight));
    }
    if (before.scheduling == asked || before.memory_limit_bytes != terms.memory_limit_bytes) {
      Apply(id, EventKind::kLimit, scheduler::LimitChanged{id, part}, absl::StrCat(part, " bytes"));
    }
    // The worker holds the job to the whole limit, and the program's queries tell of it.
    Session* const session = parts_.sessions->Find(id);
    if (session == nullptr) continue;
    session->record.job = terms;
    session->link->Send(*session, session->record);
  }
}

}  // namespace control
