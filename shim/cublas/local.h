// The library calls that the client answers itself: local::fn for every kLocal row of cublas.inc
// and cublaslt.inc, with the vendor's type. A missing body is a link error. Thread safety: as the
// vendor's: a handle belongs to one thread at a time.
#pragma once

#include "ipc/calls/vendor.h"

namespace local {

#define LANEWAY_DECLARE_kLocal(fn) LANEWAY_SIGNATURE(fn) fn;
#define LANEWAY_DECLARE_kSync(fn)
#define LANEWAY_DECLARE_kAsync(fn)
#define LANEWAY_DECLARE_kDeny(fn)
#define CALL(fn, route, ...) LANEWAY_DECLARE_##route(fn)
#include "ipc/calls/cublas.inc"
#include "ipc/calls/cublaslt.inc"
#undef CALL
#undef LANEWAY_DECLARE_kLocal
#undef LANEWAY_DECLARE_kSync
#undef LANEWAY_DECLARE_kAsync
#undef LANEWAY_DECLARE_kDeny

}  // namespace local
