// SimDaemon, third part: workers that are replaced, or that nobody needs any more.
#include <algorithm>
#include <utility>

#include "tests/protocol/sim_daemon.h"

namespace protocol {
namespace {

namespace wire = ipc::control;

}  // namespace

void SimDaemon::Upgrade() {
  if (!core_.serving || !upgrading_.empty()) return;
  for (std::pair<const uint32_t, Child>& entry : core_.children) {
    if (entry.second.own) continue;
    entry.second.leaving = true;
    upgrading_.insert(entry.first);
  }
  EnsureWorkerFor(nullptr);
  ReleaseForUpgrade();
}

void SimDaemon::ReleaseForUpgrade() {
  Client shared;
  if (upgrading_.empty() || WorkerFor(shared) == nullptr) return;
  const std::set<uint32_t> from = std::exchange(upgrading_, {});
  for (const std::pair<const uint64_t, Client>& entry : core_.clients) {
    const Client& client = entry.second;
    if (client.stage != Stage::kRunning || from.count(client.worker) == 0) continue;
    if (!client.program->stays) (void)core_.Send(client.worker, wire::ReleaseSession{entry.first});
  }
  for (const uint32_t number : from) Retire(number);
}

void SimDaemon::Retire(uint32_t number) {
  const std::map<uint32_t, Child>::iterator found = core_.children.find(number);
  if (found == core_.children.end() || found->second.retired) return;
  if (!found->second.own && !found->second.leaving) return;
  for (const std::pair<const uint64_t, Client>& entry : core_.clients) {
    const Client& client = entry.second;
    if (client.stage == Stage::kLost) continue;
    if (client.worker == number || client.own_worker == number) return;
  }
  found->second.retired = true;
  (void)core_.Send(number, wire::Stop{});
}

}  // namespace protocol
