// Under which conditions a thread certainly runs a block of a kernel. Internal to replay/.
//
// A branch under a predicate leads to one block where the predicate holds, and to another where the
// predicate does not. Behind a block, a thread runs all the block's post-dominators, if the kernel
// ends at all. The conditions that are found are enough, though a thread may come to the block in
// other ways, too. Of several such lists the shortest is taken. Thread safety: pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "softgpu/ptx/ir.h"

namespace replay {

struct Guard {
  uint32_t predicate = 0;  // a register
  bool negated = false;
};

// By block; nothing for a block that no such list is known of, and for all blocks of a kernel that
// calls functions, jumps through tables or lets single threads return early.
std::vector<std::optional<std::vector<Guard>>> CertainBlocks(const softgpu::ptx::Function& entry);

}  // namespace replay
