// From a translated function to what the compiler is given. Thread safety: functions without state.
#pragma once

#include "softgpu/exec/code.h"
#include "softgpu/jit/program.h"

namespace softgpu::jit {

Program Describe(const exec::FunctionCode& code, bool linear);

}  // namespace softgpu::jit
