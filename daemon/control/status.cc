#include "daemon/control/status.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "daemon/control/replay_view.h"
#include "daemon/control/session_link.h"
#include "ipc/client_words.h"
#include "ipc/job_options.h"

namespace control {
namespace {

using Json = nlohmann::ordered_json;

// Device memory that a program has mapped and does not use. The program's queries count it as free.
uint64_t EmptyBytes(const Session& session, uint64_t device_bytes) {
  if (session.page.get() == nullptr) return 0;
  uint64_t sum = 0;
  for (const std::atomic<uint64_t>& bytes : ipc::ClientWordsOf(session.page.get())->empty_bytes)
    sum += std::min(device_bytes, bytes.load(std::memory_order_relaxed));
  return std::min(device_bytes, sum);
}

Json KeeperJson(const KeeperState& keeper) {
  return {{"pid", keeper.process.pid}, {"state", keeper.ready ? "ready" : "starting"}};
}

Json WorkersJson(const StatusInput& input) {
  Json workers = Json::array();
  for (const std::pair<const uint32_t, Worker>& entry : input.children.workers()) {
    size_t sessions = 0;
    for (const std::pair<const uint64_t, Session>& item : input.sessions.all()) {
      sessions += item.second.worker == entry.first && item.second.phase != Phase::kLost;
    }
    workers.push_back({{"number", entry.first},
                       {"pid", entry.second.process.pid},
                       {"state", entry.second.served ? "ready" : "starting"},
                       {"sessions", sessions}});
  }
  return workers;
}

Json DevicesJson(const KeeperState& keeper) {
  Json devices = Json::array();
  for (uint32_t i = 0; i < keeper.description.device_count; ++i) {
    const ipc::control::DeviceRecord& device = keeper.description.devices[i];
    const uint64_t used = std::min(device.used_bytes, device.capacity_bytes);
    devices.push_back({{"ordinal", i},
                       {"name", device.name},
                       {"kind", NameOf(keeper.description.kind)},
                       {"capacity_bytes", device.capacity_bytes},
                       {"used_bytes", used},
                       {"free_bytes", device.capacity_bytes - used}});
  }
  return devices;
}

Json SessionJson(const Session& session, uint64_t device_bytes) {
  return {{"id", session.record.session_id},
          {"pid", session.record.pid},
          {"program", session.record.program},
          {"job", session.record.job.number},
          {"transport", session.record.transport == ipc::Transport::kZmq ? "zmq" : "ring"},
          {"worker", session.worker},
          {"state", NameOf(session.phase)},
          {"paused", session.record.pause != scheduler::Pause::kNone},
          {"device_bytes", device_bytes},
          {"empty_bytes", EmptyBytes(session, device_bytes)},
          {"iterations",
           session.page.get() == nullptr ? 0 : session.page->iteration_times.count.load()},
          {"device", session.record.device},
          {"terms", ipc::TermsJson(session.record.job.scheduling)},
          {"memory_limit_bytes", session.record.job.memory_limit_bytes},
          {"contained", session.record.contained != 0},
          {"in_process", session.link->KeepsOwnContext()},
          {"recoverable", ObstacleOf(session).empty()},
          {"obstacle", ObstacleOf(session)},
          {"replay", ReplayJson(session)},
          {"in_flight", HasWorkInFlight(session)},
          {"ops", session.page.get() == nullptr ? 0 : session.page->counts.ops_received.load()}};
}

Json JobsJson(const StatusInput& input, const std::map<uint64_t, uint64_t>& bytes) {
  struct Job {
    std::set<std::string> programs;
    uint64_t sessions = 0;
    uint64_t device_bytes = 0;
    uint64_t empty_bytes = 0;
    ipc::SchedulingTerms terms;
  };
  std::map<uint64_t, Job> jobs;
  for (const std::pair<const uint64_t, Session>& entry : input.sessions.all()) {
    Job& job = jobs[entry.second.record.job.number];
    job.programs.insert(entry.second.record.program);
    ++job.sessions;
    job.terms = entry.second.record.job.scheduling;
    const std::map<uint64_t, uint64_t>::const_iterator held = bytes.find(entry.first);
    if (held == bytes.end()) continue;
    job.device_bytes += held->second;
    job.empty_bytes += EmptyBytes(entry.second, held->second);
  }
  Json list = Json::array();
  for (const std::pair<const uint64_t, Job>& entry : jobs) {
    list.push_back({{"id", entry.first},
                    {"programs", entry.second.programs},
                    {"terms", ipc::TermsJson(entry.second.terms)},
                    {"sessions", entry.second.sessions},
                    {"device_bytes", entry.second.device_bytes},
                    {"empty_bytes", entry.second.empty_bytes}});
  }
  return list;
}

Json FaultsJson(const std::deque<Fault>& faults) {
  Json list = Json::array();
  for (const Fault& fault : faults) {
    list.push_back({{"session", fault.session_id},
                    {"job", fault.job_id},
                    {"program", fault.program},
                    {"code", fault.code},
                    {"text", fault.text}});
  }
  return list;
}

}  // namespace

std::map<uint64_t, uint64_t> DeviceBytes(const KeeperState& keeper, const SessionTable& sessions) {
  std::map<uint64_t, uint64_t> bytes;
  for (const ipc::control::Usage& usage : keeper.usages)
    bytes[ipc::control::SessionOf(usage.owner)] += usage.bytes;
  uint64_t capacity_bytes = 0;
  for (uint32_t i = 0; i < keeper.description.device_count; ++i)
    capacity_bytes += keeper.description.devices[i].capacity_bytes;
  for (const std::pair<const uint64_t, Session>& entry : sessions.all()) {
    if (entry.second.page.get() == nullptr) continue;
    const uint64_t untrusted =
        entry.second.page->counts.array_bytes.load(std::memory_order_relaxed);
    bytes[entry.first] += std::min(untrusted, capacity_bytes);
  }
  return bytes;
}

const char* NameOf(ipc::control::DeviceKind kind) {
  return kind == ipc::control::DeviceKind::kCuda ? "cuda" : "soft";
}

std::string DumpJson(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string StatusJson(const StatusInput& input) {
  const KeeperState& keeper = input.children.keeper();
  const std::map<uint64_t, uint64_t> bytes = DeviceBytes(keeper, input.sessions);
  Json sessions = Json::array();
  for (const std::pair<const uint64_t, Session>& entry : input.sessions.all()) {
    const std::map<uint64_t, uint64_t>::const_iterator held = bytes.find(entry.first);
    sessions.push_back(SessionJson(entry.second, held == bytes.end() ? 0 : held->second));
  }
  return DumpJson({{"ok", true},
                   {"version", LANEWAY_VERSION},
                   {"daemon",
                    {{"pid", getpid()},
                     {"runtime_dir", input.options.runtime_dir},
                     {"policy", input.policy},
                     {"user_memory_bytes", ipc::BytesOption(input.options.user_memory, 0)},
                     {"user_sessions", input.options.user_sessions},
                     {"mode", input.options.mode},
                     {"transport", input.options.transport},
                     {"replay_verdicts", input.observers.verdicts().size()},
                     {"replay_verdicts_max", ReplayVerdicts::kMax}}},
                   {"keeper", KeeperJson(keeper)},
                   {"workers", WorkersJson(input)},
                   {"devices", DevicesJson(keeper)},
                   {"jobs", JobsJson(input, bytes)},
                   {"sessions", sessions},
                   {"faults", FaultsJson(input.observers.faults())}});
}

std::string OkJson() { return DumpJson({{"ok", true}}); }

std::string JobJson(uint64_t run, const ipc::JobTicket& ticket, ipc::control::DeviceKind kind) {
  return DumpJson({{"ok", true},
                   {"job", run},
                   {"ticket", ipc::TextOf(ticket)},
                   {"device", NameOf(kind)},
                   {"devices", ipc::TermsJson(ticket.terms.scheduling)["devices"]}});
}

std::string ErrorJson(const std::string& sentence) {
  return DumpJson({{"ok", false}, {"sentence", sentence}});
}

}  // namespace control
