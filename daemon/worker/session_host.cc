#include "daemon/worker/session_host.h"

#include <fcntl.h>
#include <pthread.h>

#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/common/threads.h"
#include "daemon/worker/crash_handler.h"
#include "ipc/runtime_dir.h"
#include "ipc/socket.h"
#include "ipc/zmq_channel.h"

namespace worker {
namespace {

// Nothing of the session is in flight; before it is made and after its end, nothing is.
bool HasNothingInFlight(const ipc::control::SessionRecord& record, const Session* session) {
  return record.transport == ipc::Transport::kRing && (session == nullptr || session->quiet());
}

void Describe(const SessionSnapshot& snapshot, ipc::control::SessionRecord* record) {
  record->pinned_bytes = snapshot.pinned_bytes;
  record->persistent_bytes = snapshot.persistent_bytes;
  record->lane_bytes = snapshot.lane_bytes;
  record->place = snapshot.place;
}

}  // namespace

SessionHost::~SessionHost() { assert(sessions_.empty()); }

SessionHost::Entry* SessionHost::Find(uint64_t session_id) {
  const std::map<uint64_t, std::unique_ptr<Entry>>::iterator found = sessions_.find(session_id);
  return found == sessions_.end() ? nullptr : found->second.get();
}

std::string SessionHost::Attach(const ipc::control::SessionRecord& record, common::SessionFds fds) {
  assert(!Has(record.session_id));
  std::unique_ptr<Entry> entry = std::make_unique<Entry>();
  entry->record = record;
  entry->fds = std::move(fds);
  entry->page = common::SessionPageMap(entry->fds.file.get());
  if (entry->page.get() == nullptr) return "the worker cannot map the session file; see its log";
  Entry* const raw = entry.get();
  {
    const base::MutexLock lock(&mutex_);
    sessions_[record.session_id] = std::move(entry);
  }
  loop_.Watch(raw->fds.process.get(), [this, id = record.session_id] { OnClientEnded(id); });
  raw->thread =
      common::StartThread("for a session", [this, raw, record = raw->record] { Run(raw, record); });
  if (raw->thread.joinable()) return {};
  Remove(record.session_id);
  return "the worker gets no thread for another session; see its log";
}

// The thread has posted its last message, so the wait for it is short.
void SessionHost::Retire(uint64_t session_id) {
  Entry* const entry = Find(session_id);
  assert(entry != nullptr);
  entry->thread.join();
  Remove(session_id);
}

void SessionHost::Remove(uint64_t session_id) {
  loop_.Unwatch(Find(session_id)->fds.process.get());
  const base::MutexLock lock(&mutex_);
  sessions_.erase(session_id);
}

// --- orders --------------------------------------------------------------------------------------

void SessionHost::OnClientEnded(uint64_t session_id) {
  Entry* const entry = Find(session_id);
  if (entry == nullptr || !ipc::ProcessEnded(entry->fds.process.get())) return;
  loop_.Unwatch(entry->fds.process.get());
  Stop(entry);
}

void SessionHost::Stop(Entry* entry) {
  const base::MutexLock lock(&mutex_);
  entry->stop_wanted = true;
  if (entry->session != nullptr) entry->session->Stop();
}

void SessionHost::Stop(uint64_t session_id) {
  if (Entry* const entry = Find(session_id)) Stop(entry);
}

void SessionHost::Release(uint64_t session_id) {
  Entry* const entry = Find(session_id);
  if (entry == nullptr) return;  // it has just ended, and says so
  const base::MutexLock lock(&mutex_);
  entry->release_wanted = true;
  if (entry->session != nullptr) entry->session->Release();
}

void SessionHost::Decide(uint64_t session_id, const Decision& decision) {
  Entry* const entry = Find(session_id);
  if (entry == nullptr) return;
  const base::MutexLock lock(&mutex_);
  if (entry->session != nullptr) entry->session->OnDecision(decision);
}

void SessionHost::StopAll(const char* sentence) {
  for (const std::pair<const uint64_t, std::unique_ptr<Entry>>& item : sessions_) {
    ipc::MarkLost(item.second->page.get(), CUDA_ERROR_MPS_RPC_FAILURE, sentence);
    Stop(item.second.get());
  }
}

// --- what lanewayd asks --------------------------------------------------------------------------

ipc::control::SessionRecord* SessionHost::Record(uint64_t session_id) {
  Entry* const entry = Find(session_id);
  return entry == nullptr ? nullptr : &entry->record;
}

void SessionHost::List(
    const std::function<void(ipc::control::SessionRecord*, std::span<const int>)>& visit) {
  for (const std::pair<const uint64_t, std::unique_ptr<Entry>>& item : sessions_) {
    Entry& entry = *item.second;
    {
      const base::MutexLock lock(&mutex_);
      if (entry.session != nullptr) Describe(entry.session->Snapshot(), &entry.record);
    }
    visit(&entry.record, entry.fds.ToMessage());
  }
}

// --- the sessions' threads -----------------------------------------------------------------------

// A session of another transport than rings speaks on a channel of its own from the start. The
// rings of a session that another worker served are used once its client has put them in order.
std::string SessionHost::Make(Entry* entry, const ipc::control::SessionRecord& record,
                              ipc::control::Attached* attached) {
  if (!ipc::Serves(record.tables))
    return "the program's Laneway and this worker know different calls; start the program again";
  absl::StatusOr<ipc::SessionFile> file = ipc::SessionFile::Map(entry->fds.file.get());
  if (!file.ok()) return std::string(file.status().message());
  SessionSetup setup{record.session_id, record.slot, std::move(*file), {}};
  setup.generation = record.generation;
  setup.pinned_fd = fcntl(entry->fds.pinned.get(), F_DUPFD_CLOEXEC, 0);
  setup.swap_fd = fcntl(entry->fds.swap.get(), F_DUPFD_CLOEXEC, 0);
  if (setup.pinned_fd < 0 || setup.swap_fd < 0)
    return "the worker has no descriptor left; raise ulimit -n";
  setup.job_id = record.job.number;
  setup.uid = record.uid;
  setup.memory_limit_bytes = record.job.memory_limit_bytes;
  setup.scheduling = record.job.scheduling;
  if (record.transport == ipc::Transport::kZmq) {
    const std::string endpoint = ipc::SessionEndpoint(runtime_dir_, setup.session_id);
    absl::StatusOr<ipc::Channel> channel =
        ipc::BindZmqChannel(endpoint, setup.file.page()->call_token);
    if (!channel.ok()) return std::string(channel.status().message());
    setup.channel = std::move(*channel);
    ipc::control::SetText(attached->zmq_endpoint, endpoint);
  } else if (setup.generation == 0) {
    setup.channel = setup.file.WorkerChannel();
  }
  std::string error;
  std::unique_ptr<Session> session = Session::Create(std::move(setup), environment_, &error);
  if (session == nullptr) return error.empty() ? "the worker refuses the session" : error;
  const base::MutexLock lock(&mutex_);
  entry->session = std::move(session);
  attached->persistent_bytes = entry->session->Snapshot().persistent_bytes;
  if (entry->stop_wanted) entry->session->Stop();
  if (entry->release_wanted) entry->session->Release();
  return {};
}

void SessionHost::Run(Entry* entry, const ipc::control::SessionRecord& record) {
  SetThreadSession(record.session_id);
  // Fifteen characters: what a debugger, top -H and /proc call the thread.
  pthread_setname_np(pthread_self(),
                     absl::StrCat("session-", record.session_id).substr(0, 15).c_str());
  ipc::control::Attached attached;
  attached.session_id = record.session_id;
  const std::string refusal = Make(entry, record, &attached);
  if (!refusal.empty()) {
    attached.result = CUDA_ERROR_MPS_RPC_FAILURE;
    ipc::control::SetText(attached.sentence, refusal);
  }
  environment_.daemon->Post(attached);
  bool released = false;
  if (refusal.empty()) {
    entry->session->Run();
    released = entry->session->released();
    std::unique_ptr<Session> ended;
    {
      const base::MutexLock lock(&mutex_);
      ended = std::move(entry->session);
    }
  }
  if (released) {
    environment_.daemon->Post(ipc::control::SessionReleased{record.session_id});
  } else {
    environment_.daemon->Post(ipc::control::SessionEnded{record.session_id});
  }
}

// --- faults --------------------------------------------------------------------------------------

std::optional<ipc::control::Poisoned> SessionHost::LoseAtFault(uint64_t session_id, CUresult code,
                                                               const std::string& text) {
  const base::MutexLock lock(&mutex_);
  if (std::exchange(at_fault_, true)) return std::nullopt;
  // The only session has caused it.
  if (session_id == 0 && sessions_.size() == 1) session_id = sessions_.begin()->first;
  ipc::control::Poisoned report;
  report.session_id = session_id;
  report.code = code;
  ipc::control::SetText(report.text, text);
  const std::string others = absl::StrCat(
      "another program's fault has ended the shared worker; start this program again (", text, ")");
  for (const std::pair<const uint64_t, std::unique_ptr<Entry>>& item : sessions_) {
    const bool quiet = HasNothingInFlight(item.second->record, item.second->session.get());
    const bool guilty = item.first == session_id || (session_id == 0 && !quiet);
    // With nothing in flight it loses nothing: lanewayd takes it to another worker.
    if (!guilty && quiet) continue;
    ipc::MarkLost(item.second->page.get(), guilty ? code : CUDA_ERROR_MPS_RPC_FAILURE,
                  guilty ? report.text : others.c_str());
  }
  return report;
}

}  // namespace worker
