// Entry points of programs compiled with per-thread default streams: the same bodies, with stream 0
// meaning the calling thread's own.
#include "shim/driver/local.h"
#include "shim/streams.h"

namespace {

template <auto* body, class Signature>
struct PerThread;
template <auto* body, class... A>
struct PerThread<body, CUresult(A...)> {
  static CUresult Call(A... a) {
    const shim::PerThreadDefault stream_zero_is_mine;
    return body(a...);
  }
};

}  // namespace

#define PER_THREAD(fn, base)                                              \
  static_assert(std::is_same_v<decltype(::fn), decltype(::base)>);        \
  extern "C" decltype(::fn)* laneway_resolve_local_##fn() {               \
    return &PerThread<&local::base, decltype(::fn)>::Call;                \
  }                                                                       \
  namespace local {                                                       \
  __attribute__((ifunc("laneway_resolve_local_" #fn))) decltype(::fn) fn; \
  }
#include "shim/driver/per_thread.inc"
#undef PER_THREAD
