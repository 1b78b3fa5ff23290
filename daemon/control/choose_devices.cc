#include "daemon/control/choose_devices.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace control {
namespace {

std::string HowMany(size_t devices) {
  return absl::StrCat(devices, devices == 1 ? " device" : " devices");
}

// Devices that are named, and there.
absl::Status CheckNamed(const ipc::SchedulingTerms& terms, size_t count) {
  for (uint32_t i = 0; i < terms.device_count; ++i) {
    if (terms.devices[i] < count) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--gpus names device ", static_cast<unsigned>(terms.devices[i]),
                     ", and there ", count == 1 ? "is " : "are ", HowMany(count), ", 0 to ",
                     count - 1, "; laneway status lists them"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ChooseDevices(const std::vector<DeviceLoad>& devices, ipc::SchedulingTerms* terms) {
  if (terms->devices_wanted > devices.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--gpus wants ", HowMany(terms->devices_wanted), ", and there ",
        devices.size() == 1 ? "is " : "are ", devices.size(), "; laneway status lists them"));
  }
  if (terms->devices_wanted == 0) return CheckNamed(*terms, devices.size());
  std::vector<uint8_t> order(devices.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<uint8_t>(i);
  std::stable_sort(order.begin(), order.end(), [&devices](uint8_t a, uint8_t b) {
    return std::tie(devices[a].sessions, devices[a].used_bytes) <
           std::tie(devices[b].sessions, devices[b].used_bytes);
  });
  terms->device_count = std::exchange(terms->devices_wanted, 0);
  std::copy_n(order.begin(), terms->device_count, terms->devices);
  return absl::OkStatus();
}

uint32_t FirstDeviceOf(const ipc::SchedulingTerms& terms) {
  return terms.device_count != 0 ? terms.devices[0] : 0;
}

scheduler::SessionArrived ArrivedWith(const ipc::control::SessionRecord& record) {
  const ipc::SchedulingTerms& terms = record.job.scheduling;
  scheduler::SessionArrived arrived;
  arrived.session = record.session_id;
  arrived.job = record.job.number;
  arrived.user = record.uid;
  arrived.device = record.device;
  arrived.priority = terms.priority;
  arrived.weight = terms.weight;
  arrived.deadline_us = static_cast<int64_t>(terms.deadline_us);
  arrived.limit_bytes = static_cast<int64_t>(
      std::min<uint64_t>(record.job.memory_limit_bytes, ipc::limits::kDeviceArenaBytes));
  arrived.gang_size = terms.gang;
  return arrived;
}

}  // namespace control
