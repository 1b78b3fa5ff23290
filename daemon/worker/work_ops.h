// Which calls put work on the device: those that wait at the gate (daemon/worker/gate.h). What only
// names, asks or arranges passes always, so that a program comes up while others run. Thread
// safety: a function without state.
#pragma once

#include <cstdint>

namespace worker {

// `op` as it stands in a message; false for numbers that are no opcode.
bool IsWorkUntrusted(uint16_t op);

}  // namespace worker
