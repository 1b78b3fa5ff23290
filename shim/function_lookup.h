// From what a program holds to a loaded function: CUfunction, or a CUkernel in its place, which the
// driver accepts wherever it takes a function, for the current context. Thread safety: any thread.
#pragma once

#include <cstdint>

#include "shim/state.h"

namespace shim {

// 400 when it is neither. `value` (may be null) gets the function's value.
CUresult FindFunction(CUfunction program, Function** function, uint64_t* value = nullptr);

}  // namespace shim
