#include "daemon/control/views.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/control/job_commands.h"
#include "daemon/control/metrics.h"
#include "daemon/control/replay_view.h"
#include "daemon/control/status.h"
#include "ipc/job_options.h"
#include "scheduler/why.h"

namespace control {
namespace {

constexpr size_t kJournalPart = 2000;  // events of one answer: within ipc::kControlTextBytesMax

}  // namespace

Views::Views(const Parts& parts, std::function<int64_t()> now_us)
    : parts_(parts), now_us_(std::move(now_us)) {}

TopInput Views::Snapshot() const {
  return {*parts_.children,        *parts_.sessions, *parts_.state, parts_.observers->sampler(),
          parts_.observers->use(), now_us_()};
}

std::string Views::Status() const {
  return StatusJson({*parts_.options, parts_.state->policy->name(), *parts_.children,
                     *parts_.sessions, *parts_.observers});
}

std::string Views::Top() const {
  parts_.observers->Sample();
  return TopJson(Snapshot());
}

std::string Views::Journal(uint64_t after) const {
  parts_.observers->Sample();
  return JournalJson(parts_.observers->journal(), after, kJournalPart);
}

std::string Views::Metrics() const {
  parts_.observers->Sample();
  return MetricsText(Snapshot(), parts_.observers->faults_seen(), parts_.observers->journal());
}

std::string Views::Why(uint64_t job) const {
  nlohmann::ordered_json sessions = nlohmann::ordered_json::array();
  for (const std::pair<const uint64_t, Session>& entry : parts_.sessions->all()) {
    const ipc::control::SessionRecord& record = entry.second.record;
    if (job != 0 && record.job.number != job) continue;
    sessions.push_back({{"job", record.job.number},
                        {"session", entry.first},
                        {"program", record.program},
                        {"terms", ipc::TermsJson(record.job.scheduling)},
                        {"why", WhyOf(entry.second)}});
  }
  if (sessions.empty() && job != 0) return ErrorJson(NoSuchJob(job));
  return DumpJson({{"ok", true}, {"job", job}, {"sessions", sessions}});
}

std::string Views::WhyOf(const Session& session) const {
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
  std::string why =
      scheduler::Sentence(scheduler::Why(*parts_.state, session.record.session_id, now_us_()));
  if (const std::string replay = ReplayText(session); !replay.empty())
    absl::StrAppend(&why, "; ", replay);
  if (session.refusal.empty()) return why;
  return absl::StrCat(why, "; its last request for memory was refused: ", session.refusal);
}

}  // namespace control
