// Loops in which a thread only waits for others: spin locks, flags in memory, barriers of a grid.
//
// Such a loop is run to no purpose until another thread has written memory, so lanes that are in
// one make way for those that are not (schedule.h). Pure. Thread safety: a function without state.
#pragma once

#include <vector>

#include "softgpu/ptx/ir.h"

namespace softgpu::exec {

// For each instruction of `function`, whether it jumps back to the beginning of such a loop. The
// loop reads memory, no round of it leaves a register that the next round reads, and it writes
// nothing but by compare-and-swap, by exchange, and by atomics that add or set nothing. A loop
// that no test here knows is left out: it is run like every other.
std::vector<bool> WaitingLoops(const ptx::Function& function);

}  // namespace softgpu::exec
