// Loops in which a thread only waits for others: spin locks, flags in memory, barriers of a grid.
//
// Such a loop makes no progress until another thread has written memory, so its lanes make way for
// all others (schedule.h). Pure. Thread safety: a function without state.
#pragma once

#include <vector>

#include "softgpu/ptx/ir.h"

namespace softgpu::exec {

// Per instruction of `function`: true for a jump back to the beginning of such a loop. The loop
// reads memory. No round leaves a register for the next round to read. The loop's only writes are
// compare-and-swap, exchange, and atomics that add or set nothing. A loop that this test does not
// recognise runs like every other loop.
std::vector<bool> WaitingLoops(const ptx::Function& function);

}  // namespace softgpu::exec
