// libcublas.so.13's exports: every row of its table under its own name (shim/driver/exports.cc
// explains how), and as refusals the names that the vendor's library has and no header declares.
#include "ipc/signatures.h"
#include "shim/blas_calls.h"
#include "shim/cublas/local.h"
#include "shim/forward.h"

namespace {

using ipc::Op;

template <Op op, class Signature = ipc::SignatureOf<op>>
struct Stub;
template <Op op, class R, class... A>
struct Stub<op, R(A...)> {
  static R Forward(A... a) {
    const void* const values[] = {&a..., nullptr};
    return static_cast<R>(shim::ForwardCublas(op, values));
  }
  static R Deny(A...) { return static_cast<R>(shim::Deny(op)); }
};

}  // namespace

#define LANEWAY_BODY_kSync(fn) &Stub<Op::fn>::Forward
#define LANEWAY_BODY_kAsync(fn) &Stub<Op::fn>::Forward
#define LANEWAY_BODY_kDeny(fn) &Stub<Op::fn>::Deny
#define LANEWAY_BODY_kLocal(fn) &local::fn
#define CALL(fn, route, ...)                                                                     \
  extern "C" LANEWAY_SIGNATURE(fn) * laneway_resolve_##fn() { return LANEWAY_BODY_##route(fn); } \
  extern "C" __attribute__((ifunc("laneway_resolve_" #fn), visibility("default")))               \
  LANEWAY_SIGNATURE(fn) fn;
#include "ipc/calls/cublas.inc"
#undef CALL
