#include "daemon/control/child_processes.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ipc/install.h"
#include "ipc/overloaded.h"
#include "ipc/runtime_dir.h"
#include "ipc/socket.h"

namespace control {
namespace {

namespace wire = ipc::control;

constexpr int64_t kAdoptTimeoutUs = 5'000'000;
constexpr int64_t kUsageTimeoutUs = 2'000'000;
constexpr int64_t kStopTimeoutUs = 8'000'000;  // longer than a worker waits for its sessions
constexpr int64_t kSilenceUs = 500'000;  // from the end of a connection to the end of its process
constexpr int64_t kRestartDelayMinUs = 100'000;
constexpr int64_t kRestartDelayMaxUs = 5'000'000;

}  // namespace

ChildProcesses::ChildProcesses(ChildrenOptions options, common::EventLoop* loop)
    : options_(std::move(options)), loop_(loop) {}

std::vector<std::string> ChildProcesses::ArgumentsFor(const std::string& device) const {
  return {absl::StrCat("--runtime-dir=", options_.runtime_dir), absl::StrCat("--device=", device),
          absl::StrCat("--linger=", options_.linger_s)};
}

void ChildProcesses::Start(ChildrenListener* listener) {
  listener_ = listener;
  absl::StatusOr<Process> keeper = FindProcess(ipc::KeeperSocketPath(options_.runtime_dir));
  if (keeper.ok()) {
    AdoptKeeper(std::move(*keeper));
  } else {
    StartKeeper();
  }
  AdoptWorkers();
  loop_->After(kAdoptTimeoutUs, [this] {
    for (std::pair<const uint32_t, Worker>& entry : workers_) {
      if (entry.second.state != WorkerState::kListing) continue;
      spdlog::warn("worker {} does not say what it holds; killed", entry.first);
      Kill(entry.second.process);
    }
    if (keeper_.listing && adoption_ != Adoption::kDone) Kill(keeper_.process);
  });
}

// --- keeper --------------------------------------------------------------------------------------

void ChildProcesses::AdoptKeeper(Process process) {
  spdlog::info("adopting the keeper, pid {}", process.pid);
  keeper_ = KeeperState{std::move(process), true, false, true, {}, {}, {}};
  WatchKeeper();
  TellKeeper(wire::Query{});
}

void ChildProcesses::StartKeeper() {
  std::vector<std::string> arguments = ArgumentsFor(options_.device);
  arguments.push_back(absl::StrCat("--scrub=", options_.scrub));
  absl::StatusOr<Process> process =
      StartProcess({ipc::BinaryPath("laneway-keeper"), arguments, options_.runtime_dir,
                    ipc::LogPath(options_.runtime_dir, "keeper")});
  if (!process.ok()) {
    listener_->OnKeeperFailed(std::string(process.status().message()));
    return;
  }
  spdlog::info("started the keeper, pid {}", process->pid);
  const wire::KeeperReady last = keeper_.description;
  keeper_ = KeeperState{std::move(*process), true, false, false, {}, last, {}};
  WatchKeeper();
}

void ChildProcesses::WatchKeeper() {
  loop_->Watch(keeper_.process.pidfd.get(), [this] { OnKeeperEnded(); });
  loop_->Watch(keeper_.process.connection.get(), [this] { OnKeeperReadable(); });
}

void ChildProcesses::OnKeeperReadable() {
  const int fd = keeper_.process.connection.get();
  const absl::StatusOr<wire::Received<wire::KeeperToDaemon>> received =
      wire::Receive<wire::KeeperToDaemon>(fd, 0);
  if (absl::IsDeadlineExceeded(received.status())) return;
  if (!received.ok()) {  // its pidfd will say whether it has ended
    loop_->Unwatch(fd);
    keeper_.process.connection.Reset();
    loop_->After(kSilenceUs, [this, pid = keeper_.process.pid] {
      if (keeper_.running && keeper_.process.pid == pid) Kill(keeper_.process);
    });
    return;
  }
  std::visit(ipc::Overloaded{
                 [this](const wire::KeeperReady& ready) { OnKeeperReady(ready); },
                 [this](const wire::UsageList& list) {
                   keeper_.usages.insert(keeper_.usages.end(), list.usages,
                                         list.usages + list.count);
                 },
                 [this](const wire::ListEnd&) { OnKeeperListEnd(); },
                 [this](const wire::StartFailed& failed) { keeper_.failure = failed.sentence; },
             },
             received->message);
}

// First when it begins to serve, then at the head of every answer to a Query. Only the first one
// is the arrival of a keeper.
void ChildProcesses::OnKeeperReady(const wire::KeeperReady& ready) {
  keeper_.description = ready;
  keeper_.usages.clear();
  if (std::exchange(keeper_.ready, true)) return;
  keeper_delay_us_ = 0;
  spdlog::info("the keeper serves {} device(s)", ready.device_count);
  if (adoption_ == Adoption::kDone) {
    for (const std::pair<const uint32_t, Worker>& entry : workers_) {
      (void)Send(entry.first, wire::KeeperChanged{});
    }
    listener_->OnKeeperReplaced();
  }
  if (std::exchange(worker_wanted_, false)) (void)EnsureWorker();
  CheckAdopted();
}

void ChildProcesses::OnKeeperListEnd() {
  keeper_.listing = false;
  if (usage_timer_ != 0) loop_->Cancel(std::exchange(usage_timer_, 0));
  const std::vector<std::function<void()>> waiters = std::exchange(usage_waiters_, {});
  for (const std::function<void()>& waiter : waiters) waiter();
  CheckAdopted();
}

void ChildProcesses::OnKeeperEnded() {
  if (!ipc::ProcessEnded(keeper_.process.pidfd.get())) return;
  loop_->Unwatch(keeper_.process.pidfd.get());
  if (keeper_.process.connection.valid()) {
    while (keeper_.failure.empty()) {  // its last messages
      const absl::StatusOr<wire::Received<wire::KeeperToDaemon>> last =
          wire::Receive<wire::KeeperToDaemon>(keeper_.process.connection.get(), 0);
      if (!last.ok()) break;
      const wire::StartFailed* failed = std::get_if<wire::StartFailed>(&last->message);
      if (failed != nullptr) keeper_.failure = failed->sentence;
    }
    loop_->Unwatch(keeper_.process.connection.get());
  }
  const std::string how = Reap(keeper_.process);
  const bool was_ready = keeper_.ready;
  const std::string failure = keeper_.failure;
  keeper_.process = Process{};
  keeper_.running = keeper_.ready = keeper_.listing = false;
  keeper_.usages.clear();
  OnKeeperListEnd();  // commands that wait get the answer without a keeper
  if (stopping_) return FinishStop();
  spdlog::warn("the keeper ended ({})", how);
  if (!was_ready && adoption_ != Adoption::kDone) {
    listener_->OnKeeperFailed(failure.empty()
                                  ? absl::StrCat("the keeper ended (", how, "); see ",
                                                 ipc::LogPath(options_.runtime_dir, "keeper"))
                                  : failure);
    return;
  }
  loop_->After(keeper_delay_us_, [this] {
    if (!stopping_ && !keeper_.running) StartKeeper();
  });
  keeper_delay_us_ = std::clamp(keeper_delay_us_ * 2, kRestartDelayMinUs, kRestartDelayMaxUs);
}

// Without a keeper the message is dropped. A new keeper hears from the workers about their memory,
// and from lanewayd about programs in-process.
bool ChildProcesses::TellKeeper(const wire::ToKeeper& message) {
  return keeper_.process.connection.valid() &&
         wire::Send<wire::ToKeeper>(keeper_.process.connection.get(), message).ok();
}

void ChildProcesses::RefreshUsage(std::function<void()> done) {
  if (!keeper_.ready || !keeper_.process.connection.valid()) return done();
  usage_waiters_.push_back(std::move(done));
  if (usage_waiters_.size() > 1) return;  // one Query answers all callers
  TellKeeper(wire::Query{});
  usage_timer_ = loop_->After(kUsageTimeoutUs, [this] {
    usage_timer_ = 0;
    OnKeeperListEnd();
  });
}

// --- workers -------------------------------------------------------------------------------------

// A socket without a process is left from a worker that ended without a lanewayd.
void ChildProcesses::AdoptWorkers() {
  for (const uint32_t number : ipc::WorkerSocketsIn(options_.runtime_dir)) {
    next_worker_ = std::max(next_worker_, number + 1);
    const std::string path = ipc::WorkerSocketPath(options_.runtime_dir, number);
    absl::StatusOr<Process> process = FindProcess(path);
    if (!process.ok()) {
      unlink(path.c_str());
      continue;
    }
    spdlog::info("adopting worker {}, pid {}", number, process->pid);
    AddWorker(number, std::move(*process), WorkerState::kListing);
    (void)Send(number, wire::Query{});
  }
}

// Without a keeper no worker can start: it starts as soon as the keeper is ready.
absl::Status ChildProcesses::EnsureWorker() {
  if (HasWorker()) return absl::OkStatus();
  if (keeper_.ready) return StartWorker(false).status();
  worker_wanted_ = true;
  return absl::OkStatus();
}

void ChildProcesses::Transition(uint32_t worker, WorkerState to) {
  const std::map<uint32_t, Worker>::iterator found = workers_.find(worker);
  if (found != workers_.end()) found->second.Transition(to);
}

void ChildProcesses::KillWorker(uint32_t worker) {
  const std::map<uint32_t, Worker>::const_iterator found = workers_.find(worker);
  if (found != workers_.end()) Kill(found->second.process);
}

absl::StatusOr<uint32_t> ChildProcesses::StartWorker(bool own) {
  if (!keeper_.ready) return 0;
  const bool cuda = keeper_.description.kind == wire::DeviceKind::kCuda;
  const uint32_t number = next_worker_++;
  std::vector<std::string> arguments = ArgumentsFor(cuda ? "cuda" : "soft");
  arguments.push_back(absl::StrCat("--number=", number));
  if (options_.swap_bytes >= 0)
    arguments.push_back(absl::StrCat("--swap-bytes=", options_.swap_bytes));
  if (own) arguments.push_back("--own");
  // Taken from now on: the next daemon must not give the number away while this worker starts.
  const std::string socket = ipc::WorkerSocketPath(options_.runtime_dir, number);
  const ipc::UniqueFd place(open(socket.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  absl::StatusOr<Process> process =
      StartProcess({ipc::BinaryPath("laneway-worker"), arguments, options_.runtime_dir,
                    ipc::LogPath(options_.runtime_dir, absl::StrCat("worker-", number))});
  if (!process.ok()) unlink(socket.c_str());
  if (!process.ok()) return process.status();
  spdlog::info("started worker {}, pid {}", number, process->pid);
  AddWorker(number, std::move(*process), WorkerState::kStarting)->own = own;
  return number;
}

Worker* ChildProcesses::AddWorker(uint32_t number, Process process, WorkerState state) {
  Worker& worker = workers_[number];
  worker.process = std::move(process);
  worker.number = number;
  worker.state = state;
  loop_->Watch(worker.process.pidfd.get(), [this, number] { OnWorkerEnded(number); });
  loop_->Watch(worker.process.connection.get(), [this, number] { OnWorkerReadable(number); });
  return &worker;
}

absl::Status ChildProcesses::Send(uint32_t worker, const wire::DaemonToWorker& message,
                                  std::span<const int> fds) {
  const std::map<uint32_t, Worker>::const_iterator found = workers_.find(worker);
  if (found == workers_.end() || !found->second.process.connection.valid()) {
    return absl::UnavailableError("the worker is gone");
  }
  return wire::Send<wire::DaemonToWorker>(found->second.process.connection.get(), message, fds);
}

// A closed connection is the first sign of a worker's end. Its process may live a little longer.
bool ChildProcesses::OnWorkerReadable(uint32_t number) {
  const std::map<uint32_t, Worker>::iterator found = workers_.find(number);
  if (found == workers_.end() || !found->second.process.connection.valid()) return false;
  Process& process = found->second.process;
  absl::StatusOr<wire::Received<wire::WorkerToDaemon>> received =
      wire::Receive<wire::WorkerToDaemon>(process.connection.get(), 0);
  if (absl::IsDeadlineExceeded(received.status())) return false;
  if (!received.ok()) {
    loop_->Unwatch(process.connection.get());
    process.connection.Reset();
    // The worker is about to end, or is killed: without a connection lanewayd can't lead it.
    loop_->After(kSilenceUs, [this, number] {
      const std::map<uint32_t, Worker>::iterator still = workers_.find(number);
      if (still != workers_.end()) Kill(still->second.process);
    });
    return false;
  }
  HandleWorker(&found->second, &*received);
  return true;
}

void ChildProcesses::HandleWorker(Worker* worker, wire::Received<wire::WorkerToDaemon>* received) {
  std::visit(ipc::Overloaded{
                 [&](const wire::WorkerReady& ready) { NoteReady(worker, ready); },
                 [&](const wire::ListEnd&) { EndListing(worker); },
                 [&](const wire::StartFailed& failed) { worker->failure = failed.sentence; },
                 // Compiles for reports alone.
                 [&](const auto& report) {
                   listener_->OnWorkerReport(worker->number, report, &received->fds);
                 },
             },
             received->message);
}

void ChildProcesses::NoteReady(Worker* worker, const wire::WorkerReady& ready) {
  worker->own = ready.own != 0;
  if (std::exchange(worker->served, true) || worker->state == WorkerState::kListing) return;
  if (worker->state == WorkerState::kStarting) worker->Transition(WorkerState::kReady);
  spdlog::info("worker {} is ready", worker->number);
  listener_->OnWorkerReady(worker->number);
}

// The worker may have begun to serve before or while it listed, or may still start.
void ChildProcesses::EndListing(Worker* worker) {
  if (worker->state != WorkerState::kListing) return;
  worker->Transition(worker->served ? WorkerState::kReady : WorkerState::kStarting);
  listener_->OnWorkerReady(worker->number);
  CheckAdopted();
}

void ChildProcesses::OnWorkerEnded(uint32_t number) {
  const std::map<uint32_t, Worker>::iterator found = workers_.find(number);
  if (found == workers_.end() || !ipc::ProcessEnded(found->second.process.pidfd.get())) return;
  // Messages that the child sent before its end come first: they say why it ended.
  while (OnWorkerReadable(number)) {
  }
  if (found->second.process.connection.valid())
    loop_->Unwatch(found->second.process.connection.get());
  Worker worker = std::move(found->second);
  loop_->Unwatch(worker.process.pidfd.get());
  workers_.erase(found);
  const std::string how = Reap(worker.process);
  spdlog::log(stopping_ ? spdlog::level::info : spdlog::level::warn, "worker {} ended ({})", number,
              how);
  unlink(ipc::WorkerSocketPath(options_.runtime_dir, number).c_str());
  TellKeeper(wire::ReleaseWorker{number});
  WorkerLoss loss = LossOf(worker);
  if (loss.sentence.empty()) {
    loss.sentence =
        absl::StrCat("the worker ended (", how, "); see ",
                     ipc::LogPath(options_.runtime_dir, absl::StrCat("worker-", number)));
  }
  listener_->OnWorkerLost(number, loss);
  CheckAdopted();
  if (stopping_) FinishStop();
}

// --- adoption and the end ------------------------------------------------------------------------

// The keeper counts after the workers have listed: until a worker lists its sessions, the worker
// obeys the last lanewayd, and makes memory of a lane that a session may have given back meanwhile.
void ChildProcesses::CheckAdopted() {
  if (adoption_ != Adoption::kListing || !keeper_.ready || keeper_.listing) return;
  const auto lists = [](const auto& entry) { return entry.second.state == WorkerState::kListing; };
  if (std::any_of(workers_.begin(), workers_.end(), lists)) return;
  adoption_ = Adoption::kCounting;
  RefreshUsage([this] { FinishAdoption(); });
}

void ChildProcesses::FinishAdoption() {
  if (!keeper_.ready) {  // it has ended, and the next one counts again
    adoption_ = Adoption::kListing;
    return;
  }
  adoption_ = Adoption::kDone;
  for (const wire::Usage& usage : keeper_.usages) {
    if (usage.worker == 0) continue;
    next_worker_ = std::max(next_worker_, usage.worker + 1);
    if (workers_.count(usage.worker) == 0) TellKeeper(wire::ReleaseWorker{usage.worker});
  }
  // The keeper may be younger than the workers, or they may have missed that it changed.
  for (const std::pair<const uint32_t, Worker>& entry : workers_) {
    (void)Send(entry.first, wire::KeeperChanged{});
  }
  listener_->OnChildrenReady();
}

void ChildProcesses::Stop() {
  if (std::exchange(stopping_, true)) return;
  for (const std::pair<const uint32_t, Worker>& entry : workers_) {
    if (!Send(entry.first, wire::Stop{}).ok()) Kill(entry.second.process);
  }
  loop_->After(kStopTimeoutUs, [this] {
    for (const std::pair<const uint32_t, Worker>& entry : workers_) Kill(entry.second.process);
    if (keeper_.running) Kill(keeper_.process);
  });
  FinishStop();
}

// The keeper ends last: workers hand their memory to it until they end.
void ChildProcesses::FinishStop() {
  if (!workers_.empty()) return;
  if (!keeper_.running) {
    unlink(ipc::KeeperSocketPath(options_.runtime_dir).c_str());
    listener_->OnAllStopped();
    return;
  }
  if (!TellKeeper(wire::Stop{})) Kill(keeper_.process);
}

}  // namespace control
