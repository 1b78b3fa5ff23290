// The kind of a message's call, by the untrusted number in its header. A number that is no opcode
// has no kind. Thread safety: functions without state.
//
// A call is work when it makes the device touch memory. Work waits at the gate
// (daemon/worker/gate.h): outside the session's turn the memory may be another session's. The rule
// reads the roles of the call's parameters (ipc/roles.h): a call with a device address is work.
// Exceptions from the rule are listed by name, with the reason.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "ipc/calls.h"

namespace worker {

// What only names, asks or arranges passes always, so that a program comes up while others run.
bool IsWorkUntrusted(uint16_t op);

// cuBLAS's or cublasLt's: what alone can be captured into a piece (GraphCapture).
bool IsLibraryCallUntrusted(uint16_t op);

// A call that the rule alone would take for the opposite.
struct WorkException {
  std::string_view name;
  bool is_work;
  std::string_view reason;
};
std::span<const WorkException> WorkExceptions();

// The rule: the row has a wire form, and a parameter that is, or may be, a device address.
bool NamesDeviceMemory(const ipc::Row& row);

}  // namespace worker
