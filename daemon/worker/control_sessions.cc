// The control side's part on the sessions' own threads: making one, running it, and what a poisoned
// context means for all of them.
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/worker/control.h"
#include "daemon/worker/crash_handler.h"
#include "ipc/runtime_dir.h"
#include "ipc/zmq_channel.h"

namespace worker {
namespace {

// Nothing of it is in flight; before it is made and after its end, nothing is.
bool IsQuiet(const ipc::control::SessionRecord& record, const Session* session) {
  return record.transport == ipc::Transport::kRing && (session == nullptr || session->quiet());
}

}  // namespace

std::string Control::MakeSession(Entry* entry, ipc::control::Attached* attached) {
  if (!ipc::Serves(entry->record.tables))
    return "the program's Laneway and this worker know different calls; start the program again";
  absl::StatusOr<ipc::SessionFile> file = ipc::SessionFile::Map(entry->session_fd.get());
  if (!file.ok()) return std::string(file.status().message());
  SessionSetup setup{entry->record.session_id, entry->record.slot, std::move(*file), {}};
  setup.generation = entry->record.generation;
  setup.pinned_fd = fcntl(entry->pinned_fd.get(), F_DUPFD_CLOEXEC, 0);
  setup.swap_fd = fcntl(entry->swap_fd.get(), F_DUPFD_CLOEXEC, 0);
  if (setup.pinned_fd < 0 || setup.swap_fd < 0)
    return "the worker has no descriptor left; raise ulimit -n";
  setup.job_id = entry->record.job.number;
  setup.uid = entry->record.uid;
  setup.memory_limit_bytes = entry->record.job.memory_limit_bytes;
  setup.scheduling = entry->record.job.scheduling;
  if (entry->record.transport == ipc::Transport::kZmq) {
    const std::string endpoint = ipc::SessionEndpoint(options_.runtime_dir, setup.session_id);
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

void Control::RunSession(Entry* entry) {
  SetThreadSession(entry->record.session_id);
  // Fifteen characters: what a debugger, top -H and /proc call the thread.
  pthread_setname_np(pthread_self(),
                     absl::StrCat("session-", entry->record.session_id).substr(0, 15).c_str());
  ipc::control::Attached attached;
  attached.session_id = entry->record.session_id;
  const std::string refusal = MakeSession(entry, &attached);
  if (!refusal.empty()) {
    attached.result = CUDA_ERROR_MPS_RPC_FAILURE;
    ipc::control::SetText(attached.sentence, refusal);
  }
  Post(attached);
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
    Post(ipc::control::SessionReleased{entry->record.session_id});
  } else {
    Post(ipc::control::SessionEnded{entry->record.session_id});
  }
}

// --- poison
// ------------------------------------------------------------------------------------------

void Control::OnPoisoned(uint64_t session_id, CUresult code, const std::string& text) {
  ipc::control::Poisoned report;
  {
    const base::MutexLock lock(&mutex_);
    poisoned.store(true);
    if (std::exchange(poisoned_, true)) return;
    CUstream stopped = nullptr;
    const std::string driver_words = devices_->FaultText(&stopped);
    if (session_id == 0 && stopped != nullptr && environment_.owners != nullptr) {
      session_id = environment_.owners->SessionOf(stopped);
    }
    // Alone, it is the one.
    if (session_id == 0 && sessions_.size() == 1) session_id = sessions_.begin()->first;
    report.session_id = session_id;
    report.code = code;
    const std::string& words = text.empty() ? driver_words : text;
    ipc::control::SetText(report.text, words);
    const std::string others = absl::StrCat(
        "another program's fault has ended the shared worker; start this program again (", words,
        ")");
    for (const std::pair<const uint64_t, std::unique_ptr<Entry>>& item : sessions_) {
      const bool quiet = IsQuiet(item.second->record, item.second->session.get());
      const bool guilty = item.first == session_id || (session_id == 0 && !quiet);
      // With nothing in flight it loses nothing: lanewayd takes it to another worker.
      if (!guilty && quiet) continue;
      ipc::MarkLost(item.second->page.get(), guilty ? code : CUDA_ERROR_MPS_RPC_FAILURE,
                    guilty ? report.text : others.c_str());
    }
  }
  Post(report);
}

}  // namespace worker
