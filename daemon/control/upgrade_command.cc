#include "daemon/control/upgrade_command.h"

#include <spdlog/spdlog.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/control/status.h"

namespace control {

void UpgradeCommand::Begin(const std::string& peer) {
  if (!parts_.scheduler->serving() || parts_.scheduler->stopped()) {
    parts_.commands->Reply(peer, ErrorJson("the daemon is starting or stopping; try again"));
    return;
  }
  if (upgrade_.running()) {
    upgrade_.Join(peer);
    return;
  }
  upgrade_.Begin(peer, parts_.children->workers());
  for (const uint32_t number : upgrade_.held())
    parts_.children->Transition(number, WorkerState::kLeaving);
  if (const absl::Status ensured = parts_.children->EnsureWorker(); !ensured.ok()) {
    Fail(std::string(ensured.message()));
    return;
  }
  spdlog::info("replacing {} worker(s)", upgrade_.from().size());
}

void UpgradeCommand::Reconcile() {
  const std::string loss = std::exchange(loss_, {});
  if (upgrade_.waits_for_worker() && parts_.children->Current() != nullptr) Release();
  if (upgrade_.waits_for_worker() && !parts_.children->HasWorker() && !loss.empty()) Fail(loss);
  Finish();
}

void UpgradeCommand::Release() {
  for (const uint64_t id : upgrade_.Release(*parts_.sessions)) {
    const uint32_t worker = parts_.sessions->Find(id)->worker;
    if (!parts_.children->Send(worker, ipc::control::ReleaseSession{id}).ok()) upgrade_.Except(id);
  }
}

// The new worker does not come: the workers that were to leave stay.
void UpgradeCommand::Fail(const std::string& sentence) {
  const std::map<uint32_t, Worker>& workers = parts_.children->workers();
  for (const uint32_t number : upgrade_.held()) {
    const std::map<uint32_t, Worker>::const_iterator found = workers.find(number);
    const bool leaves = found != workers.end() && found->second.state == WorkerState::kLeaving;
    if (leaves) parts_.children->Stay(number);
  }
  const std::string answer = ErrorJson(sentence);
  for (const std::string& peer : upgrade_.Fail().peers) parts_.commands->Reply(peer, answer);
}

void UpgradeCommand::Finish() {
  const std::optional<Upgrade::Answer> done = upgrade_.Finish(*parts_.sessions);
  if (!done.has_value()) return;
  const std::string answer =
      absl::StrCat("{\"ok\":true,\"moved\":", done->moved, ",\"kept\":", done->kept, "}");
  for (const std::string& peer : done->peers) parts_.commands->Reply(peer, answer);
}

}  // namespace control
