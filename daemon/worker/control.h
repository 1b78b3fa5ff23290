// The worker's control side: attaches sessions, watches their clients, tells lanewayd what happens.
//
// One thread (main) runs the loop; each session has a thread of its own that makes, runs and ends
// it. The daemon may come and go: sessions live without it, and a new one learns of them by Query.
// Thread safety: OnPoisoned(), Post() and Daemon() from any thread; everything else on the main
// thread. Lock order: the board's mutex (board.h), then ours.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "daemon/common/acceptor.h"
#include "daemon/common/event_loop.h"
#include "daemon/common/hearing.h"
#include "daemon/common/session_page.h"
#include "daemon/worker/devices.h"
#include "daemon/worker/extents.h"
#include "daemon/worker/gate.h"
#include "daemon/worker/session.h"
#include "ipc/control.h"
#include "ipc/unique_fd.h"

namespace worker {

struct ControlOptions {
  std::string runtime_dir;
  uint32_t number = 0;
  int64_t linger_s = 60;
  bool own = false;  // for one session that shares it with nobody
};

// The process's exit code after a poisoned context; anything else that ends it is a crash.
inline constexpr int kPoisonedExitCode = 86;

class Control : public PoisonSink, public DaemonLink {
 public:
  // Everything outlives this object.
  Control(ControlOptions options, Devices* devices, KeeperExtents* extents);
  ~Control() override;

  void SetEnvironment(const Environment& environment);
  absl::Status Listen();
  // The connection to the daemon that started us.
  void Greet(ipc::UniqueFd connection);
  // Until a Stop message, or until nobody has needed this worker for linger_s.
  void Run();

  void OnPoisoned(uint64_t session_id, CUresult code, const std::string& text) override;
  void Post(const ipc::control::WorkerToDaemon& message) override;
  uint64_t Daemon() const override { return daemon_.load(); }

 private:
  // One attached session. Its thread touches only what is marked; the rest is the main thread's.
  struct Entry {
    ipc::control::SessionRecord record;
    ipc::UniqueFd session_fd;
    ipc::UniqueFd pinned_fd;
    ipc::UniqueFd pidfd;
    ipc::UniqueFd swap_fd;
    common::SessionPageMap page;
    std::thread thread;
    std::unique_ptr<Session> session;  // guarded by mutex_; set and cleared by its thread
    bool stop_wanted = false;          // guarded by mutex_
    bool release_wanted = false;       // guarded by mutex_
  };

  // --- main thread: connections and sessions
  void AddConnection(ipc::UniqueFd socket);
  void DropConnection(int fd);
  bool Hear(int fd);  // false: nothing more from there, for now
  void Handle(int fd, ipc::control::Received<ipc::control::DaemonToWorker>* received);
  void ChangeTerms(const ipc::control::SessionRecord& record);
  void FollowKeeper();  // when a new keeper serves
  static void Describe(const SessionSnapshot& snapshot, ipc::control::SessionRecord* record);
  void ResizeLane(uint64_t lane, uint64_t bytes);
  void Decide(uint64_t session_id, const Decision& decision);
  void SetDaemon(bool present);
  void Attach(const ipc::control::SessionRecord& record, std::vector<ipc::UniqueFd>* fds);
  void Refuse(uint64_t session_id, const char* sentence);
  void AnswerQuery(int fd);
  void OnClientEnded(uint64_t session_id);
  void RequestStop(Entry* entry);
  void RequestStop(uint64_t session_id);
  void RequestRelease(uint64_t session_id);
  ipc::control::WorkerReady Describe() const;
  void Retire(uint64_t session_id);
  void Forget(uint64_t session_id);  // REQUIRES: the session has no thread
  void StopAll();
  void Enqueue(const ipc::control::WorkerToDaemon& message);  // any thread
  void Broadcast(const ipc::control::WorkerToDaemon& message);
  void OnOutbox();
  void ArmLinger();
  bool Unneeded() const { return connections_.empty() && sessions_.empty(); }

  // --- session thread
  void RunSession(Entry* entry);
  std::string MakeSession(Entry* entry, ipc::control::Attached* attached);

  const ControlOptions options_;
  Devices* const devices_;
  KeeperExtents* const extents_;
  Environment environment_;
  Board board_{[this](const ipc::control::WorkerToDaemon& message) { Enqueue(message); }};
  std::atomic<uint64_t> daemon_{0};
  uint64_t daemons_ = 0;  // so far
  common::EventLoop loop_;
  common::Acceptor acceptor_{&loop_};
  ipc::UniqueFd outbox_event_;
  std::map<int, ipc::UniqueFd> connections_;
  common::Hearing hearing_{[this](int fd) { return Hear(fd); }};
  bool stopping_ = false;
  common::EventLoop::TimerId linger_timer_ = 0;

  base::Mutex mutex_;  // also of the members of Entry that say so
  std::vector<ipc::control::WorkerToDaemon> outbox_ GUARDED_BY(mutex_);
  bool poisoned_ GUARDED_BY(mutex_) = false;
  // Changed by the main thread alone, under the mutex: the main thread reads it without, and other
  // threads with it.
  std::map<uint64_t, std::unique_ptr<Entry>> sessions_;
};

}  // namespace worker
