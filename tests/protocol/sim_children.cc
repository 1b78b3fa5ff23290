#include "tests/protocol/sim_children.h"

#include <fcntl.h>

#include <utility>

#include "ipc/overloaded.h"
#include "tests/protocol/say.h"

namespace protocol {
namespace {

namespace wire = ipc::control;

constexpr pid_t kPidOfWorkers = 10'000'000;  // above those of programs

bool IsListing(const control::Worker& worker) {
  return worker.state == control::WorkerState::kListing;
}

}  // namespace

SimChildren::SimChildren(Scene* scene, SimKeeper* keeper, StartProcess start,
                         std::function<void(uint32_t)> kill)
    : scene_(scene), keeper_process_(*keeper), start_(std::move(start)), kill_(std::move(kill)) {}

SimChildren::~SimChildren() {
  for (const auto& [number, connection] : connections_) connection->daemon_gone = true;
}

void SimChildren::Adopt(uint32_t number, std::shared_ptr<Connection> connection) {
  Add(number, std::move(connection), true);
}

void SimChildren::Start(control::ChildrenListener* listener) {
  listener_ = listener;
  keeper_.running = keeper_.listing = true;
  for (const auto& [number, connection] : connections_) (void)Send(number, wire::Query{});
}

void SimChildren::Add(uint32_t number, std::shared_ptr<Connection> connection, bool listing) {
  control::Worker& worker = workers_[number];
  worker.number = number;
  worker.state = listing ? control::WorkerState::kListing : control::WorkerState::kStarting;
  worker.process.pid = kPidOfWorkers + static_cast<pid_t>(number);
  worker.process.connection = ipc::UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC));
  connections_[number] = std::move(connection);
}

// --- what children say ---------------------------------------------------------------------------

bool SimChildren::HearOne() {
  if (keeper_.listing && (scene_->calm || scene_->dice.OneIn(4))) return HearKeeper();
  std::vector<uint32_t> order;
  for (const auto& [number, connection] : connections_) order.push_back(number);
  if (order.empty()) return false;
  const size_t first = scene_->dice.Below(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (HearWorker(order[(first + i) % order.size()])) return true;
  }
  return false;
}

bool SimChildren::HearKeeper() {
  ReadUsages();
  keeper_.ready = true;
  keeper_.listing = false;
  scene_->Change();
  CheckAdopted();
  return true;
}

void SimChildren::ReadUsages() {
  const keeper::Keeper* const keeper = keeper_process_.AfterDaemons();
  keeper_.description = keeper->Describe();
  keeper_.usages.clear();
  for (const wire::UsageList& list : keeper->Usages())
    keeper_.usages.insert(keeper_.usages.end(), list.usages, list.usages + list.count);
}

bool SimChildren::HearWorker(uint32_t number) {
  Connection* const connection = connections_.at(number).get();
  if (!connection->to_daemon.empty()) {
    const wire::WorkerToDaemon message = std::move(connection->to_daemon.front());
    connection->to_daemon.pop_front();
    scene_->Change();
    if (scene_->verbose) Say(false, number, message);
    Handle(&workers_.at(number), message);
    return true;
  }
  if (!connection->worker_gone) return false;
  OnWorkerEnded(number);
  return true;
}

void SimChildren::Handle(control::Worker* worker, const wire::WorkerToDaemon& message) {
  std::vector<ipc::UniqueFd> fds;
  std::visit(
      ipc::Overloaded{
          [&](const wire::WorkerReady& ready) {
            worker->own = ready.own != 0;
            if (std::exchange(worker->served, true) || IsListing(*worker)) return;
            if (worker->state == control::WorkerState::kStarting)
              worker->Transition(control::WorkerState::kReady);
            listener_->OnWorkerReady(worker->number);
          },
          [&](const wire::ListEnd&) { EndListing(worker); },
          [&](const wire::StartFailed& failed) { worker->failure = failed.sentence; },
          [&](const wire::SessionRecord& record) {
            const Program* const program = scene_->Find(record.pid);
            if (program != nullptr) fds = program->files().Copies();
            listener_->OnWorkerReport(worker->number, record, &fds);
          },
          [&](const auto& report) { listener_->OnWorkerReport(worker->number, report, &fds); },
      },
      message);
}

void SimChildren::EndListing(control::Worker* worker) {
  if (!IsListing(*worker)) return;
  worker->Transition(worker->served ? control::WorkerState::kReady
                                    : control::WorkerState::kStarting);
  listener_->OnWorkerReady(worker->number);
  CheckAdopted();
}

void SimChildren::OnProcessGone(uint32_t number) {
  const auto found = connections_.find(number);
  if (found != connections_.end()) found->second->worker_gone = true;
}

void SimChildren::OnWorkerEnded(uint32_t number) {
  const control::Worker worker = std::move(workers_.at(number));
  workers_.erase(number);
  connections_.erase(number);
  scene_->Change();
  TellKeeper(wire::ReleaseWorker{number});
  control::WorkerLoss loss = control::LossOf(worker);
  loss.sentence = "the worker ended";
  listener_->OnWorkerLost(number, loss);
  CheckAdopted();
}

void SimChildren::CheckAdopted() {
  if (adoption_ == Adoption::kDone || !keeper_.ready || keeper_.listing) return;
  for (const auto& [number, worker] : workers_) {
    if (adoption_ == Adoption::kListing && IsListing(worker)) return;
  }
  adoption_ = adoption_ == Adoption::kListing ? Adoption::kCounting : Adoption::kDone;
  keeper_.listing = adoption_ == Adoption::kCounting;  // the keeper answers a second time
  if (keeper_.listing) return;
  for (const wire::Usage& usage : keeper_.usages) {
    if (usage.worker != 0 && workers_.count(usage.worker) == 0)
      TellKeeper(wire::ReleaseWorker{usage.worker});
  }
  for (const auto& [number, worker] : workers_) (void)Send(number, wire::KeeperChanged{});
  listener_->OnChildrenReady();
}

// --- what lanewayd says --------------------------------------------------------------------------

absl::Status SimChildren::EnsureWorker() {
  return HasWorker() ? absl::OkStatus() : StartWorker(false).status();
}

absl::StatusOr<uint32_t> SimChildren::StartWorker(bool own) {
  if (!keeper_.ready) return 0;
  uint32_t number = 0;
  std::shared_ptr<Connection> connection = start_(own, &number);
  Add(number, std::move(connection), false);
  workers_.at(number).own = own;
  return number;
}

void SimChildren::Transition(uint32_t worker, control::WorkerState to) {
  const auto found = workers_.find(worker);
  if (found != workers_.end()) found->second.Transition(to);
}

absl::Status SimChildren::Send(uint32_t worker, const wire::DaemonToWorker& message,
                               std::span<const int> fds) {
  const auto found = connections_.find(worker);
  if (found == connections_.end() || found->second->worker_gone)
    return absl::UnavailableError("the worker is gone");
  if (const wire::AttachSession* const attach = std::get_if<wire::AttachSession>(&message)) {
    if (Program* const program = scene_->Find(attach->session.pid)) program->TakeFiles(fds);
  }
  found->second->to_worker.push_back(message);
  scene_->Change();
  return absl::OkStatus();
}

bool SimChildren::TellKeeper(const wire::ToKeeper& message) {
  keeper_process_.Post(message);
  scene_->Change();
  return true;
}

void SimChildren::RefreshUsage(std::function<void()> done) {
  ReadUsages();
  done();
}

void SimChildren::OnKeeperReplaced() {
  if (adoption_ != Adoption::kDone) return;
  keeper_.usages.clear();
  for (const auto& [number, worker] : workers_) (void)Send(number, wire::KeeperChanged{});
  listener_->OnKeeperReplaced();
}

}  // namespace protocol
