// Looking at the sessions' counters now and then, for figures, journal and history.
#include <algorithm>
#include <cstring>
#include <ctime>

#include "daemon/control/daemon.h"
#include "daemon/control/metrics.h"
#include "ipc/futex.h"

namespace control {

Now Daemon::ReadClocks() const { return {NowUs(), static_cast<int64_t>(std::time(nullptr))}; }

void Daemon::NoteBegin(const Session& session) {
  const ipc::control::SessionRecord& record = session.record;
  journal_.Add({.kind = EventKind::kSessionBegin,
                .at_us = NowUs(),
                .session = record.session_id,
                .job = record.job.number},
               record.program);
  history_.Begin(record.session_id, record.job.number, record.pid, ReadClocks());
  SampleAgain();
}

void Daemon::NoteEnd(const Session& session) {
  SampleSession(session);
  const uint64_t id = session.record.session_id;
  std::string note;
  TimeCounts times = {};
  if (session.page.get() != nullptr) {
    times = CountsOf(session.page->iteration_times);
    if (session.page->loss.load() != 0) {
      // A copy first: the client can write here, too.
      char text[ipc::kLossTextBytes];
      std::copy_n(session.page->loss_text, sizeof text, text);
      note.assign(text, strnlen(text, sizeof text));
    }
  }
  history_.End(id, times, note, ReadClocks());
  watch_.Forget(id);
  journal_.Add({.kind = EventKind::kSessionEnd,
                .at_us = NowUs(),
                .session = id,
                .job = session.record.job.number},
               note);
}

void Daemon::SampleSession(const Session& session) {
  if (session.page.get() == nullptr) return;
  const ipc::IterationTimes& times = session.page->iteration_times;
  watch_.Sample(session.record.session_id, session.record.job.number, times, NowUs(), &journal_);
  const ipc::Progress& progress = ProgressOf(session);
  watch_.SampleWait(session.record.session_id, session.record.job.number, progress, NowUs(),
                    &journal_);
  SessionReading reading;
  reading.iterations = times.count.load();
  reading.total_us = times.total_us.load();
  reading.waited_us = times.waited_us.load();
  reading.persistent_bytes = progress.persistent_bytes.load();
  reading.ephemeral_bytes = progress.ephemeral_bytes.load();
  if (const scheduler::Session* const known = state_.Find(session.record.session_id)) {
    reading.lane = known->lane;
  }
  history_.Read(session.record.session_id, reading);
}

void Daemon::SampleSessions() {
  for (const std::pair<const uint64_t, Session>& entry : sessions_.all()) {
    SampleSession(entry.second);
  }
}

std::string Daemon::Metrics() {
  SampleSessions();
  return MetricsText(LiveInput(), faults_seen_, journal_);
}

// Only while programs run, or one that ran is not yet told to be over.
void Daemon::SampleAgain() {
  if (sample_timer_ != 0 || (sessions_.all().empty() && history_.quiet())) return;
  sample_timer_ = loop_.After(kSampleUs, [this] {
    sample_timer_ = 0;
    SampleSessions();
    history_.EndOfReadings(ReadClocks());
    SampleAgain();
  });
}

}  // namespace control
