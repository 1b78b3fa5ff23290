// Control-flow graph of one function and the places where a diverged warp meets again.
#pragma once

#include "softgpu/ptx/ir.h"

namespace softgpu::ptx {

// Fills blocks and reconverges: an instruction reconverges when it begins the immediate
// post-dominator of a block that ends in a conditional branch, or follows a call.
void BuildControlFlow(Function* function);

}  // namespace softgpu::ptx
