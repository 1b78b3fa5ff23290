// The devices as lanewayd knows them: `laneway top`, asked for anew when figures are wanted.
//
// A program that looks at devices alone becomes no session by it. The program sees the devices of
// its job in the order in which its CUDA numbers them, and its job's share of memory where the job
// has a limit. Sessions of other users are shown to root alone.
#include "nvml/source.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/status/statusor.h"
#include "ipc/environment.h"
#include "ipc/job.h"
#include "ipc/runtime_dir.h"
#include "ipc/zmq_control.h"

namespace {

using Json = nlohmann::json;

constexpr int64_t kAskTimeoutUs = 2'000'000;

ipc::JobTerms OwnTerms() {
  const char* const text = std::getenv(ipc::kJobVariable);
  const std::optional<ipc::JobTicket> ticket =
      ipc::ParseTicketUntrusted(text == nullptr ? "" : text);
  ipc::JobTerms terms = ticket.has_value() ? ticket->terms : ipc::JobTerms{};
  if (!ipc::SanitizeTerms(&terms.scheduling)) terms = {};
  return terms;
}

bool MaySee(const Json& session) {
  return geteuid() == 0 || session.value("uid", ~0u) == geteuid();
}

nvml::Device Describe(const Json& device) {
  nvml::Device described;
  described.name = device.value("name", "");
  described.uuid = device.value("uuid", "");
  described.pci_bus_id = device.value("pci_bus_id", "");
  const std::vector<int> capability = device.value("compute_capability", std::vector<int>{0, 0});
  if (capability.size() == 2) {
    described.major = capability[0];
    described.minor = capability[1];
  }
  described.multiprocessors = device.value("multiprocessors", 0u);
  described.total_bytes = device.value("capacity_bytes", uint64_t{0});
  described.used_bytes = device.value("used_bytes", uint64_t{0});
  described.busy_percent = device.value("busy_percent", 0u);
  return described;
}

// The sessions of one device, a process once, and the job's share where it is limited.
void AddSessions(const Json& sessions, unsigned ordinal, const ipc::JobTerms& own,
                 nvml::Device* device) {
  std::map<uint32_t, uint64_t> bytes;
  uint64_t limit = own.memory_limit_bytes, jobs = 0;
  for (const Json& session : sessions) {
    const uint64_t held = session.value("device_bytes", uint64_t{0});
    if (session.value("device", 0u) != ordinal) continue;
    if (session.value("job", uint64_t{0}) == own.number && own.number != 0) {
      jobs += held;
      limit = session.value("memory_limit_bytes", uint64_t{0});  // it may have changed
    }
    if (MaySee(session)) bytes[session.value("pid", 0u)] += held;
  }
  for (const std::pair<const uint32_t, uint64_t>& process : bytes)
    device->processes.push_back({process.first, process.second});
  if (limit == 0 || limit >= device->total_bytes) return;
  device->total_bytes = limit;
  device->used_bytes = std::min(jobs, limit);
}

class Lanewayd : public nvml::Source {
 public:
  bool Read(nvml::Snapshot* snapshot) override {
    const std::string endpoint = ipc::ControlEndpoint(ipc::RuntimeDir());
    const absl::StatusOr<std::string> reply =
        ipc::AskControl(endpoint, R"({"command":"top"})", kAskTimeoutUs);
    if (!reply.ok()) return false;
    const Json top = Json::parse(*reply, nullptr, false);
    if (!top.is_object() || !top.value("ok", false)) return false;
    try {
      *snapshot = Snapshot(top);
    } catch (const Json::exception&) {
      return false;  // of another version of Laneway
    }
    return true;
  }

 private:
  static nvml::Snapshot Snapshot(const Json& top) {
    nvml::Snapshot snapshot;
    const ipc::JobTerms own = OwnTerms();
    const Json& devices = top.at("devices");
    std::vector<unsigned> seen(own.scheduling.devices,
                               own.scheduling.devices + own.scheduling.device_count);
    for (unsigned i = 0; seen.size() < devices.size() && own.scheduling.device_count == 0; ++i)
      seen.push_back(i);
    for (const unsigned ordinal : seen) {
      if (ordinal >= devices.size()) continue;
      const Json& device = devices.at(ordinal);
      snapshot.on_gpu = device.value("kind", "") == "cuda";
      snapshot.devices.push_back(Describe(device));
      AddSessions(top.at("sessions"), ordinal, own, &snapshot.devices.back());
    }
    return snapshot;
  }
};

}  // namespace

nvml::Source& nvml::TheSource() {
  static Lanewayd* const source = new Lanewayd;
  return *source;
}
