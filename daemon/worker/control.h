// The worker's control side: attaches sessions, watches their clients, tells lanewayd what happens.
//
// One thread (main) runs the loop; each session has a thread of its own (session_host.h). The
// daemon may come and go: sessions live without it, and a new one learns of them by Query.
// Thread safety: OnPoisoned(), Post() and Daemon() from any thread; everything else on the main
// thread. Lock order: the board's mutex (board.h), then ours.
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "daemon/common/acceptor.h"
#include "daemon/common/event_loop.h"
#include "daemon/common/hearing.h"
#include "daemon/worker/devices.h"
#include "daemon/worker/extents.h"
#include "daemon/worker/gate.h"
#include "daemon/worker/outbox.h"
#include "daemon/worker/session.h"
#include "daemon/worker/session_host.h"
#include "ipc/control.h"
#include "ipc/unique_fd.h"

namespace worker {

struct ControlOptions {
  std::string runtime_dir;
  uint32_t number = 0;
  int64_t linger_s = 60;
  bool own = false;  // the worker serves one session alone
};

// The process's exit code after a poisoned context; anything else that ends it is a crash.
inline constexpr int kPoisonedExitCode = 86;

class Control : public PoisonSink, public DaemonLink {
 public:
  // Everything outlives this object.
  Control(ControlOptions options, Devices* devices, KeeperExtents* extents);

  void SetEnvironment(const Environment& environment);
  absl::Status Listen();
  // The connection to the daemon that started us.
  void Greet(ipc::UniqueFd connection);
  // Until a Stop message, or until the worker has had no session and no daemon for linger_s.
  void Run();

  void OnPoisoned(uint64_t session_id, CUresult code, const std::string& text) override;
  void Post(const ipc::control::WorkerToDaemon& message) override;
  uint64_t Daemon() const override { return daemon_.load(); }

 private:
  void AddConnection(ipc::UniqueFd socket);
  void DropConnection(int fd);
  bool Hear(int fd);  // false: nothing more from there, for now
  void Handle(int fd, ipc::control::Received<ipc::control::DaemonToWorker>* received);
  void ChangeTerms(const ipc::control::SessionRecord& record);
  void FollowKeeper();  // when a new keeper serves
  void ResizeLane(uint64_t lane, uint64_t bytes);
  void SetDaemon(bool present);
  void Attach(const ipc::control::SessionRecord& record, std::vector<ipc::UniqueFd>* fds);
  void Refuse(uint64_t session_id, const char* sentence);
  void AnswerQuery(int fd);
  ipc::control::WorkerReady Describe() const;
  void Retire(uint64_t session_id);
  void OnGone(uint64_t session_id);
  void StopAll();
  void Broadcast(const ipc::control::WorkerToDaemon& message);
  void OnOutbox();
  void ArmLinger();
  bool Unneeded() const { return connections_.empty() && sessions_.empty(); }

  const ControlOptions options_;
  Devices* const devices_;
  KeeperExtents* const extents_;
  Environment environment_;
  Board board_{[this](const ipc::control::WorkerToDaemon& message) { outbox_.Post(message); }};
  std::atomic<uint64_t> daemon_{0};
  uint64_t daemons_ = 0;  // so far
  common::EventLoop loop_;
  common::Acceptor acceptor_{&loop_};
  Outbox outbox_{&loop_, [this] { OnOutbox(); }};
  std::map<int, ipc::UniqueFd> connections_;
  common::Hearing hearing_{[this](int fd) { return Hear(fd); }};
  bool stopping_ = false;
  common::EventLoop::TimerId linger_timer_ = 0;
  SessionHost sessions_;
};

}  // namespace worker
