#include "daemon/control/top_snapshot.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/uuid_text.h"
#include "daemon/control/replay_view.h"
#include "daemon/control/session_link.h"
#include "daemon/control/status.h"
#include "ipc/job_options.h"

namespace control {
namespace {

using Json = nlohmann::ordered_json;

// Places in the policy's order, for sessions that hold or want a lane.
std::map<scheduler::SessionId, uint64_t> RanksOf(const scheduler::State& state) {
  std::vector<std::pair<scheduler::Key, scheduler::SessionId>> order;
  for (const std::pair<const scheduler::SessionId, scheduler::Session>& entry : state.sessions) {
    const scheduler::Session& session = entry.second;
    if (session.phase == scheduler::Phase::kEnding || session.paused()) continue;
    const int64_t rank = state.policy->Rank(state, session);
    order.push_back({{rank, session.arrival, session.id}, session.id});
  }
  std::sort(order.begin(), order.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::map<scheduler::SessionId, uint64_t> ranks;
  for (size_t i = 0; i < order.size(); ++i) ranks[order[i].second] = i + 1;
  return ranks;
}

std::string StateOf(const Session& session, const scheduler::Session* known) {
  if (session.phase != Phase::kRunning || known == nullptr) return NameOf(session.phase);
  if (known->pause == scheduler::Pause::kDismissed) return "swapped";  // or on its way
  if (known->evicted()) return "evicted";
  if (known->paused()) return "paused";
  if (known->place.residence != scheduler::Residence::kDevice) return "swapped";
  if (known->need != scheduler::Need::kNone) return "waits";
  if (known->granted && known->runnable) return "runs";
  return known->runnable ? "waits" : "idle";
}

SessionView ViewOf(const Session& session, const TopInput& input) {
  SessionView view;
  view.session = &session;
  const uint64_t id = session.record.session_id;
  const scheduler::Session* const known = input.state.Find(id);
  view.state = StateOf(session, known);
  if (known != nullptr) {
    view.lane = known->lane;
    view.busy_us = static_cast<uint64_t>(std::max<int64_t>(known->busy_us, 0));
  }
  if (session.page.get() == nullptr) return view;
  view.figures = input.sampler.Of(id, session.page->iteration_times, input.now_us);
  const ipc::Progress& progress = session.link->ProgressOf(session);
  view.persistent_bytes = progress.persistent_bytes.load();
  view.ephemeral_bytes = progress.ephemeral_bytes.load();
  if (session.phase != Phase::kRunning) return view;
  view.wait = NameOf(progress.wait.load());
  // To the worker a pause is a turn that does not come.
  if (known != nullptr && known->paused() && !view.wait.empty()) {
    view.wait = NameOf(ipc::WaitState::kPaused);
  }
  const uint64_t since_us = progress.wait_since_us.load();
  const uint64_t now_us = static_cast<uint64_t>(input.now_us);
  if (!view.wait.empty() && since_us != 0 && since_us < now_us) view.waiting_us = now_us - since_us;
  return view;
}

Json ViewJson(const SessionView& view) {
  const Session& session = *view.session;
  return {{"job", session.record.job.number},
          {"session", session.record.session_id},
          {"program", session.record.program},
          {"pid", session.record.pid},
          {"uid", session.record.uid},
          {"worker", session.worker},
          {"phase", NameOf(session.phase)},
          {"state", view.state},
          {"wait", view.wait},
          {"waiting_us", view.waiting_us},
          {"device", session.record.device},
          {"lane", view.lane},
          {"rank", view.rank},
          {"iterations", view.figures.iterations},
          {"iterations_per_second", view.figures.per_second},
          {"p50_us", view.figures.p50_us},
          {"p99_us", view.figures.p99_us},
          {"waited_us", view.figures.waited_us},
          {"busy_us", view.busy_us},
          {"switches", view.figures.switches},
          {"persistent_bytes", view.persistent_bytes},
          {"ephemeral_bytes", view.ephemeral_bytes},
          {"device_bytes", view.device_bytes},
          {"memory_limit_bytes", session.record.job.memory_limit_bytes},
          {"terms", ipc::TermsJson(session.record.job.scheduling)},
          {"recoverable", ObstacleOf(session).empty()},
          {"obstacle", ObstacleOf(session)},
          {"replay", ReplayJson(session)},
          {"ops", session.page.get() == nullptr ? 0 : session.page->counts.ops_received.load()}};
}

Json EventJson(const Event& event) {
  Json json = {{"number", event.number}, {"at_us", event.at_us}, {"kind", NameOf(event.kind)}};
  const std::pair<const char*, uint64_t> words[] = {
      {"session", event.session},
      {"job", event.job},
      {"lane", event.lane},
      {"other", event.other},
      {"count", event.count},
      {"bytes", event.bytes},
      {"took_us", static_cast<uint64_t>(std::max<int64_t>(event.took_us, 0))}};
  for (const std::pair<const char*, uint64_t>& word : words) {
    if (word.second != 0) json[word.first] = word.second;
  }
  if (event.text[0] != '\0') json["text"] = event.text;
  return json;
}

}  // namespace

std::vector<SessionView> ViewsOf(const TopInput& input) {
  std::map<uint64_t, uint64_t> bytes = DeviceBytes(input.children.keeper(), input.sessions);
  const std::map<scheduler::SessionId, uint64_t> ranks = RanksOf(input.state);
  std::vector<SessionView> views;
  for (const std::pair<const uint64_t, Session>& entry : input.sessions.all()) {
    SessionView view = ViewOf(entry.second, input);
    view.device_bytes = bytes[entry.first];
    const std::map<scheduler::SessionId, uint64_t>::const_iterator rank = ranks.find(entry.first);
    if (rank != ranks.end()) view.rank = rank->second;
    views.push_back(std::move(view));
  }
  return views;
}

std::string TopJson(const TopInput& input) {
  const KeeperState& keeper = input.children.keeper();
  Json devices = Json::array();
  for (uint32_t i = 0; i < keeper.description.device_count; ++i) {
    const ipc::control::DeviceRecord& device = keeper.description.devices[i];
    devices.push_back({{"ordinal", i},
                       {"name", device.name},
                       {"kind", NameOf(keeper.description.kind)},
                       {"uuid", base::UuidText(device.uuid)},
                       {"pci_bus_id", device.pci_bus_id},
                       {"compute_capability", {device.major, device.minor}},
                       {"multiprocessors", device.multiprocessors},
                       {"capacity_bytes", device.capacity_bytes},
                       {"used_bytes", std::min(device.used_bytes, device.capacity_bytes)},
                       {"busy_percent", input.use.PercentOf(i)}});
  }
  Json sessions = Json::array();
  for (const SessionView& view : ViewsOf(input)) sessions.push_back(ViewJson(view));
  return DumpJson({{"ok", true},
                   {"now_us", input.now_us},
                   {"policy", input.state.policy->name()},
                   {"devices", devices},
                   {"sessions", sessions}});
}

std::string JournalJson(const Journal& journal, uint64_t after, size_t events_max) {
  Json events = Json::array();
  for (const Event& event : journal.After(after, events_max)) events.push_back(EventJson(event));
  return DumpJson(
      {{"ok", true}, {"last", journal.last()}, {"lost", journal.lost()}, {"events", events}});
}

}  // namespace control
