// Declares the bodies of the exported calls: for every CALL row of exports.inc, a function
// runtime::api::<name> with the type that the toolkit's headers give the exported <name>.
// A body that is missing, or whose parameters differ, is a link error.
#pragma once

#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

namespace runtime::api {

#define CALL(name, needs) decltype(::name) name;
#define PRIVATE(name, needs)
#define PTSZ(name, body, needs)
#define PTDS(name, waiting, async_body)
#define REFUSED(name, reason)
#include "runtime/exports.inc"
#undef CALL
#undef PRIVATE
#undef PTSZ
#undef PTDS
#undef REFUSED

}  // namespace runtime::api
