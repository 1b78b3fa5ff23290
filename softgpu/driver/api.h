// Declares softgpu::api::cuFoo for every driver entry point, with the type that cuda.h gives it.
//
// Defining one of these functions, in any api_*.cc, is all it takes to implement a call: the
// declarations are weak, and exports.cc answers CUDA_ERROR_NOT_SUPPORTED for the ones that nobody
// defined. A definition whose parameters differ from cuda.h is a new overload, which
// -Werror=missing-declarations refuses.
//
// Entry points have run their common checks (exports.cc) before a function here is called: the
// driver is initialised, no sticky error is pending, and stream 0 means what the exported name
// says.
#pragma once

#include <cuda.h>
#include <cudaProfiler.h>

namespace softgpu::api {

#define CALL(fn, ...) extern decltype(::fn) fn __attribute__((weak));
#include "ipc/calls/driver.inc"
#undef CALL

}  // namespace softgpu::api
