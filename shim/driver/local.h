// The driver calls that the client answers itself: one function local::fn for every kLocal row of
// ipc/calls/driver.inc, with the vendor's type. A missing body is a link error. Bodies are grouped
// by subject in the files beside this one. Thread safety: as the driver's own: any thread.
#pragma once

#include "ipc/calls/vendor.h"

namespace local {

#define LANEWAY_DECLARE_kLocal(fn) LANEWAY_SIGNATURE(fn) fn;
#define LANEWAY_DECLARE_kSync(fn)
#define LANEWAY_DECLARE_kAsync(fn)
#define LANEWAY_DECLARE_kDeny(fn)
#define CALL(fn, route, ...) LANEWAY_DECLARE_##route(fn)
#include "ipc/calls/driver.inc"
#undef CALL
#undef LANEWAY_DECLARE_kLocal
#undef LANEWAY_DECLARE_kSync
#undef LANEWAY_DECLARE_kAsync
#undef LANEWAY_DECLARE_kDeny

}  // namespace local
