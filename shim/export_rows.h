// One exported function for each row of a table, under the row's own name. For a file that exports
// a library's table, once:
//
//     #define LANEWAY_FORWARD shim::ForwardCublas     sends what is neither local nor denied
//     #include "shim/export_rows.h"
//     #include "ipc/calls/cublas.inc"
//
// An exported function is an indirect function. The function's type comes from the vendor's header
// by decltype. The resolver returns the address of the stub, or of local::fn, behind the question
// whether the session is traced (shim/call_trace.h). Resolvers run during relocation, so a resolver
// does nothing else.
#pragma once

#include "ipc/signatures.h"
#include "shim/call_trace.h"
#include "shim/forward.h"

namespace shim {

template <ipc::Op op, uint32_t (*kForward)(ipc::Op, ipc::Values),
          class Signature = ipc::SignatureOf<op>>
struct Stub;
template <ipc::Op op, uint32_t (*kForward)(ipc::Op, ipc::Values), class R, class... A>
struct Stub<op, kForward, R(A...)> {
  static R Forward(A... a) {
    const void* const values[] = {&a..., nullptr};
    return static_cast<R>(kForward(op, values));
  }
  static R Deny(A...) { return static_cast<R>(shim::Deny(op)); }
};

// These look at the frames of their callers (shim/call_site.h), among which there must be no frame
// of a trace. Their bodies write their events.
template <ipc::Op op>
inline constexpr bool kTracesItself =
    op == ipc::Op::cuMemAlloc_v2 || op == ipc::Op::cuMemAllocPitch_v2 ||
    op == ipc::Op::cuMemAllocAsync || op == ipc::Op::cuMemAllocAsync_ptsz ||
    op == ipc::Op::cuMemAllocFromPoolAsync || op == ipc::Op::cuMemAllocFromPoolAsync_ptsz;

template <ipc::Op op, auto fn>
constexpr ipc::SignatureOf<op>* Entry() {
  if constexpr (kTracesItself<op>) {
    return fn;
  } else {
    return &Traced<op, fn, ipc::SignatureOf<op>>::Call;
  }
}

}  // namespace shim

#define LANEWAY_STUB(fn) shim::Stub<ipc::Op::fn, &LANEWAY_FORWARD>
#define LANEWAY_ENTRY(fn, body) shim::Entry<ipc::Op::fn, body>()
#define LANEWAY_BODY_kSync(fn) LANEWAY_ENTRY(fn, &LANEWAY_STUB(fn)::Forward)
#define LANEWAY_BODY_kAsync(fn) LANEWAY_ENTRY(fn, &LANEWAY_STUB(fn)::Forward)
#define LANEWAY_BODY_kDeny(fn) &LANEWAY_STUB(fn)::Deny
#define LANEWAY_BODY_kLocal(fn) LANEWAY_ENTRY(fn, &local::fn)
#define CALL(fn, route, ...)                                                                     \
  extern "C" LANEWAY_SIGNATURE(fn) * laneway_resolve_##fn() { return LANEWAY_BODY_##route(fn); } \
  extern "C" __attribute__((ifunc("laneway_resolve_" #fn), visibility("default")))               \
  LANEWAY_SIGNATURE(fn) fn;
