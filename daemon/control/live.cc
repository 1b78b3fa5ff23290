// The answers that change with every look: what `laneway top` shows, and the journal.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "daemon/control/status.h"

namespace control {
namespace {

using Json = nlohmann::ordered_json;

Json SessionFigures(const Session& session, const TopInput& input, uint64_t device_bytes) {
  Figures figures;
  if (session.page.get() != nullptr) {
    figures =
        input.watch.Of(session.record.session_id, session.page->iteration_times, input.now_us);
  }
  return {{"job", session.record.job_id},
          {"session", session.record.session_id},
          {"program", session.record.program},
          {"pid", session.record.pid},
          {"state", NameOf(session.phase)},
          {"iterations", figures.iterations},
          {"iterations_per_second", figures.per_second},
          {"p50_us", figures.p50_us},
          {"p99_us", figures.p99_us},
          {"waited_us", figures.waited_us},
          {"switches", figures.switches},
          {"device_bytes", device_bytes}};
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

std::string TopJson(const TopInput& input) {
  const KeeperState& keeper = input.children.keeper();
  Json devices = Json::array();
  for (uint32_t i = 0; i < keeper.description.device_count; ++i) {
    const ipc::control::DeviceRecord& device = keeper.description.devices[i];
    devices.push_back({{"ordinal", i},
                       {"name", device.name},
                       {"capacity_bytes", device.capacity_bytes},
                       {"used_bytes", std::min(device.used_bytes, device.capacity_bytes)}});
  }
  std::map<uint64_t, uint64_t> bytes;
  for (const ipc::control::Usage& usage : keeper.usages) {
    bytes[ipc::control::SessionOf(usage.owner)] += usage.bytes;
  }
  Json sessions = Json::array();
  for (const std::pair<const uint64_t, Session>& entry : input.sessions.all()) {
    sessions.push_back(SessionFigures(entry.second, input, bytes[entry.first]));
  }
  return DumpJson({{"ok", true},
                   {"now_us", input.now_us},
                   {"policy", input.policy},
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
