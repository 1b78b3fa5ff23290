// Messages in a printed trace. Thread safety: functions without state.
#pragma once

#include <cstdio>
#include <type_traits>
#include <variant>

#include "ipc/control.h"

namespace protocol {

// In the order of the variants.
inline constexpr const char* kToWorkerNames[] = {
    "Query",  "Stop",         "KeeperChanged", "AttachSession", "DetachSession", "ReleaseSession",
    "Record", "AssignLane",   "ResizeLane",    "Grant",         "Revoke",        "Successors",
    "Swap",   "MemoryAnswer", "LaneChanged",   "LanePolicy"};
inline constexpr const char* kToDaemonNames[] = {
    "WorkerReady", "ListEnd",      "StartFailed",  "Record",      "Attached",   "SessionEnded",
    "Released",    "Poisoned",     "Switched",     "GateReport",  "LaneNeeded", "LaneShrunk",
    "LaneChanged", "MemoryNeeded", "MemoryIfFree", "MemoryFreed", "Swapped"};
static_assert(std::size(kToWorkerNames) == std::variant_size_v<ipc::control::DaemonToWorker>);
static_assert(std::size(kToDaemonNames) == std::variant_size_v<ipc::control::WorkerToDaemon>);

// One line: its name, and what of it says whom and how much it is about.
template <class Message>
void Say(bool to_worker, uint32_t worker, const Message& message) {
  std::printf("      worker %u %s %s", worker, to_worker ? "hears" : "says",
              to_worker ? kToWorkerNames[message.index()] : kToDaemonNames[message.index()]);
  std::visit(
      [](const auto& body) {
        if constexpr (requires { body.session_id; })
          std::printf(" session %lu", static_cast<unsigned long>(body.session_id));
        if constexpr (requires { body.session; })
          std::printf(" session %lu of program %d",
                      static_cast<unsigned long>(body.session.session_id), body.session.pid);
        if constexpr (requires { body.lane; })
          std::printf(" lane %lu", static_cast<unsigned long>(body.lane));
        if constexpr (requires { body.bytes; })
          std::printf(" bytes %lu", static_cast<unsigned long>(body.bytes));
        if constexpr (requires { body.from; })
          std::printf(" from %lu to %lu", static_cast<unsigned long>(body.from),
                      static_cast<unsigned long>(body.to));
        if constexpr (requires { body.event; })
          std::printf(" event %lu", static_cast<unsigned long>(body.event));
        if constexpr (requires { body.out; })
          std::printf(" out %lu", static_cast<unsigned long>(body.out));
        if constexpr (requires { body.result; })
          std::printf(" result %lu", static_cast<unsigned long>(body.result));
        if constexpr (requires { body.granted; })
          std::printf(" lane bytes %lu granted %u wants %u",
                      static_cast<unsigned long>(body.lane_bytes), body.granted, body.wants);
      },
      message);
  std::printf("\n");
}

}  // namespace protocol
