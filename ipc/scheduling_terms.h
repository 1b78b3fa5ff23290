// How a job is scheduled, as its user told `laneway run`. These are a part of the job's terms
// (ipc/job.h), which hold for each session of the job (docs/scheduling.md).
//
// A value of fixed size without padding, because tickets and sessions' records hold it. Thread
// safety: values; functions without state.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ipc {

inline constexpr unsigned kJobDevicesMax = 8;
inline constexpr uint32_t kPriorityMax = 99;
inline constexpr uint32_t kWeightMax = 10'000;
inline constexpr uint32_t kGangMax = 64;
inline constexpr uint64_t kDeadlineUsMax = uint64_t{365} * 24 * 3600 * 1'000'000;  // a year
inline constexpr size_t kLabelBytes = 64;                                          // with its zero

struct SchedulingTerms {
  uint32_t priority = 1;        // class, 0 is the most urgent
  uint32_t weight = 100;        // of each session's share of time
  uint64_t deadline_us = 0;     // of each iteration, from when its work is there; 0: none
  uint32_t gang = 0;            // sessions that run together or not at all; < 2: each by itself
  uint32_t devices_wanted = 0;  // so many, whichever lanewayd chooses; 0: `devices`
  uint32_t device_count = 0;    // of `devices`; 0: all devices
  uint32_t reserved = 0;
  uint8_t devices[kJobDevicesMax] = {};  // numbers, in the order in which its programs see them
  char label[kLabelBytes] = {};          // for people

  bool operator==(const SchedulingTerms&) const = default;
};

// Ends the texts of terms that come from elsewhere. True when every number is in range.
inline bool SanitizeTerms(SchedulingTerms* terms) {
  terms->label[kLabelBytes - 1] = '\0';
  if (terms->device_count > kJobDevicesMax || terms->devices_wanted > kJobDevicesMax) return false;
  unsigned seen = 0;
  for (uint32_t i = 0; i < terms->device_count; ++i) {
    const unsigned device = terms->devices[i];
    if (device >= kJobDevicesMax || (seen >> device & 1) != 0) return false;
    seen |= 1u << device;
  }
  return terms->priority <= kPriorityMax && terms->weight >= 1 && terms->weight <= kWeightMax &&
         terms->deadline_us <= kDeadlineUsMax && terms->gang <= kGangMax;
}

}  // namespace ipc
