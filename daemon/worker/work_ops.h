// What kind of call a message bears, by its number as it stands there: one that is no opcode is of
// no kind. Thread safety: functions without state.
#pragma once

#include <cstdint>

namespace worker {

// Puts work on the device: it waits at the gate (daemon/worker/gate.h). What only names, asks or
// arranges passes always, so that a program comes up while others run.
bool IsWorkUntrusted(uint16_t op);

// cuBLAS's or cublasLt's: what alone can be captured into a piece (GraphCapture).
bool IsLibraryCallUntrusted(uint16_t op);

}  // namespace worker
