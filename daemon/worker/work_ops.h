// The kind of a message's call, by the untrusted number in its header. A number that is no opcode
// has no kind. Thread safety: functions without state.
//
// Work is whatever makes the device touch memory: it waits at the gate (daemon/worker/gate.h), for
// out of its turn it would touch what is another's now. Which calls are work follows from the roles
// of their parameters (ipc/roles.h): a call with a device address is. What that rule gets wrong is
// listed by name, with the reason.
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
