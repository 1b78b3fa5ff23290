// The sessions of a worker process. Each has a thread, which makes the session, runs it and ends
// it.
//
// Attach() takes a session from lanewayd. The session stays in the books until its thread has
// posted SessionEnded or SessionReleased and Retire() has joined the thread. An order that comes
// before the session is made is kept. An order after the session's end is dropped. Thread safety:
// LoseAtFault() from any thread, everything else on the loop's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "daemon/common/event_loop.h"
#include "daemon/common/session_fds.h"
#include "daemon/common/session_page.h"
#include "daemon/worker/session.h"
#include "ipc/control.h"
#include "ipc/unique_fd.h"

namespace worker {

class SessionHost {
 public:
  // All outlive this object. `environment` is complete before the first Attach(). A session's
  // thread posts Attached to `environment->daemon`, with an error when the session could not be
  // made, and later posts the session's end.
  SessionHost(const Environment* environment, common::EventLoop* loop, std::string runtime_dir)
      : environment_(*environment), loop_(*loop), runtime_dir_(std::move(runtime_dir)) {}
  ~SessionHost();  // REQUIRES: empty()
  SessionHost(const SessionHost&) = delete;

  // Returns why the session can't be had, or an empty string.
  std::string Attach(const ipc::control::SessionRecord& record, common::SessionFds fds);
  // Joins the thread of a session that has said that it ended.
  void Retire(uint64_t session_id);
  bool Has(uint64_t session_id) const { return sessions_.count(session_id) != 0; }
  bool empty() const { return sessions_.empty(); }

  // The session ends soon, or leaves for another worker.
  void Stop(uint64_t session_id);
  void Release(uint64_t session_id);
  void Decide(uint64_t session_id, const Decision& decision);
  // Marks each session lost with this sentence, and stops it.
  void StopAll(const char* sentence);

  // The session's record, which the caller may change; null: there is no such session.
  ipc::control::SessionRecord* Record(uint64_t session_id);
  // Calls `visit` for each session, with the session's record as of now and with its descriptors as
  // a message carries them.
  void List(const std::function<void(ipc::control::SessionRecord*, std::span<const int>)>& visit);

  // The device has failed in this process. Marks the culprit lost with `code`. When `session_id` is
  // 0 the culprit is the only session, or else each session with work in flight. Other sessions
  // with work in flight are marked lost, too. Quiet sessions go on in another worker. Returns the
  // report for lanewayd; empty when an earlier call returned it.
  std::optional<ipc::control::Poisoned> LoseAtFault(uint64_t session_id, CUresult code,
                                                    const std::string& text) EXCLUDES(mutex_);

 private:
  // The session's thread touches the marked members alone. The rest is the loop's thread's.
  struct Entry {
    ipc::control::SessionRecord record;
    common::SessionFds fds;
    common::SessionPageMap page;
    std::thread thread;
    std::unique_ptr<Session> session;  // guarded by mutex_; set and cleared by its thread
    bool stop_wanted = false;          // guarded by mutex_
    bool release_wanted = false;       // guarded by mutex_
  };

  Entry* Find(uint64_t session_id);
  void OnClientEnded(uint64_t session_id);
  void Stop(Entry* entry) EXCLUDES(mutex_);
  void Remove(uint64_t session_id);  // REQUIRES: the session has no thread

  // --- the session's thread
  // `record`: a copy, because the control loop may change the entry's while the session is made.
  void Run(Entry* entry, const ipc::control::SessionRecord& record);
  std::string Make(Entry* entry, const ipc::control::SessionRecord& record,
                   ipc::control::Attached* attached);

  const Environment& environment_;
  common::EventLoop& loop_;
  const std::string runtime_dir_;
  base::Mutex mutex_;  // also of the members of Entry that say so
  bool at_fault_ GUARDED_BY(mutex_) = false;
  // Changed by the loop's thread alone, under the mutex: that thread reads it without, and other
  // threads with it.
  std::map<uint64_t, std::unique_ptr<Entry>> sessions_;
};

}  // namespace worker
