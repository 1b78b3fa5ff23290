// The parameters of Laneway's own calls, as constants of the compiler: roles::params::kLaunch, ...
// For the table of rows, and for code that is made from a row at compile time.
#pragma once

#include "ipc/calls/laneway_calls.h"
#include "ipc/calls/rows.h"

#define LANEWAY_TYPE(fn) laneway::fn
namespace ipc::roles::params {
#define CALL(fn, route, ...) LANEWAY_PARAMS_##route(fn __VA_OPT__(, ) __VA_ARGS__)
#include "ipc/calls/laneway.inc"
#undef CALL
}  // namespace ipc::roles::params
#undef LANEWAY_TYPE
