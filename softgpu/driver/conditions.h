// The conditions of graphs that live in this process, and how kernels set them
// (cudaGraphSetConditional). Thread safety: functions without state.
#pragma once

#include "graphs/condition.h"
#include "softgpu/exec/launch.h"

namespace softgpu {

graphs::Conditions& AllConditions();
// For Launch: what kernels set.
ConditionSetter& DriverConditions();

}  // namespace softgpu
