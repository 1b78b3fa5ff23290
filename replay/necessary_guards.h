// Under which conditions alone a thread comes to a block of a kernel. Internal to replay/.
//
// Where all ways to a block lead through one side of a branch under a predicate, no thread comes
// there for which the predicate is otherwise. The conditions of a block need not be all that there
// are, and a thread for which they hold may turn elsewhere: certain_blocks.h lists the opposite.
// Thread safety: pure.
#pragma once

#include <vector>

#include "replay/certain_blocks.h"
#include "softgpu/ptx/ir.h"

namespace replay {

// By block; nothing for a kernel that jumps through tables.
std::vector<std::vector<Guard>> NecessaryGuards(const softgpu::ptx::Function& entry);

}  // namespace replay
