#include "daemon/control/observers.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <utility>

#include "daemon/control/session_link.h"
#include "ipc/futex.h"

namespace control {
namespace {

// The text with which a session was marked lost; empty for a session that was not.
std::string LossOf(const ipc::SessionPage& page) {
  if (page.loss.load() == 0) return {};
  // A copy first: the client can write here, too.
  char text[ipc::kLossTextBytes];
  std::copy_n(page.loss_text, sizeof text, text);
  return std::string(text, strnlen(text, sizeof text));
}

}  // namespace

Now ReadClocks() { return {ipc::MonotonicNs() / 1000, static_cast<int64_t>(std::time(nullptr))}; }

Observers::Observers(const std::string& state_dir, const Sources& sources,
                     std::function<Now()> clock)
    : sources_(sources), clock_(std::move(clock)), history_(state_dir), verdicts_(state_dir) {}

Observers::~Observers() {
  if (sample_timer_ != 0) sources_.loop->Cancel(sample_timer_);
}

void Observers::Begin(const Session& session) {
  const ipc::control::SessionRecord& record = session.record;
  Note({.kind = EventKind::kSessionBegin, .session = record.session_id, .job = record.job.number},
       record.program);
  history_.Begin(record.session_id, record.job.number, record.pid, clock_());
  verdicts_.Begin(session);
  SampleAgain();
}

void Observers::End(const Session& session) {
  SampleOne(session);
  const uint64_t id = session.record.session_id;
  std::string note;
  TimeCounts times = {};
  if (session.page.get() != nullptr) {
    times = CountsOf(session.page->iteration_times);
    note = LossOf(*session.page.get());
  }
  history_.End(id, times, note, clock_());
  sampler_.Forget(id);
  verdicts_.End(session);
  Note({.kind = EventKind::kSessionEnd, .session = id, .job = session.record.job.number}, note);
}

void Observers::Note(Event event, std::string_view text) {
  if (event.at_us == 0) event.at_us = clock_().us;
  journal_.Add(event, text);
}

void Observers::AddFault(Fault fault) {
  ++faults_seen_;
  Note({.kind = EventKind::kFault, .session = fault.session_id, .job = fault.job_id}, fault.text);
  faults_.push_back(std::move(fault));
  if (faults_.size() > kFaultsMax) faults_.pop_front();
}

void Observers::SampleOne(const Session& session) {
  if (session.page.get() == nullptr) return;
  const uint64_t id = session.record.session_id;
  const uint64_t job = session.record.job.number;
  const ipc::IterationTimes& times = session.page->iteration_times;
  const ipc::Progress& progress = session.link->ProgressOf(session);
  sampler_.Sample(id, job, times, clock_().us, &journal_);
  sampler_.SampleWait(id, job, progress, clock_().us, &journal_);
  SessionReading reading;
  reading.iterations = times.count.load();
  reading.total_us = times.total_us.load();
  reading.waited_us = times.waited_us.load();
  reading.persistent_bytes = progress.persistent_bytes.load();
  reading.ephemeral_bytes = progress.ephemeral_bytes.load();
  if (const scheduler::Session* const known = sources_.state->Find(id)) reading.lane = known->lane;
  history_.Read(id, reading);
  verdicts_.Read(session, clock_().s);
}

void Observers::Sample() {
  PassTime();
  for (const std::pair<const uint64_t, Session>& entry : sources_.sessions->all())
    SampleOne(entry.second);
}

void Observers::Close(bool programs_end) {
  Sample();
  history_.CloseAll(programs_end, clock_());
  verdicts_.Save();
}

void Observers::Launched(uint64_t run, const std::string& command, ipc::UniqueFd run_pidfd) {
  history_.Launched(run, command, std::move(run_pidfd));
}

void Observers::Exited(uint64_t run, int code) { history_.Exited(run, code, clock_()); }

// Only while programs run, or the history still has to record the end of one that ran.
void Observers::SampleAgain() {
  if (sample_timer_ != 0 || (sources_.sessions->all().empty() && history_.quiet())) return;
  sample_timer_ = sources_.loop->After(kSampleUs, [this] {
    sample_timer_ = 0;
    Sample();
    history_.EndOfReadings(clock_());
    verdicts_.Save();
    SampleAgain();
  });
}

}  // namespace control
