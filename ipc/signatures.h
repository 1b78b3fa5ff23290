// The C function type of each opcode: SignatureOf<Op::cuMemFree_v2> is CUresult(CUdeviceptr).
// Types come from the headers by decltype, so a row cannot drift from them.
#pragma once

#include "ipc/calls.h"
#include "ipc/calls/laneway_calls.h"
#include "ipc/calls/vendor.h"

namespace ipc {

namespace internal {
template <Op>
struct SignatureOf;
#define CALL(fn, ...)                   \
  template <>                           \
  struct SignatureOf<Op::fn> {          \
    using type = LANEWAY_SIGNATURE(fn); \
  };
#include "ipc/calls/cublas.inc"
#include "ipc/calls/cublaslt.inc"
#include "ipc/calls/driver.inc"
#undef CALL
#define CALL(fn, ...)          \
  template <>                  \
  struct SignatureOf<Op::fn> { \
    using type = laneway::fn;  \
  };
#include "ipc/calls/laneway.inc"
#undef CALL
}  // namespace internal

template <Op op>
using SignatureOf = typename internal::SignatureOf<op>::type;

}  // namespace ipc
