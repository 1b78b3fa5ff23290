// libcuda.so.1's exports: every row of the driver's table under its own name.
//
// An exported function is an indirect function: its type comes from the header by decltype, and its
// resolver returns the address of the stub, or of local::fn. Resolvers run during relocation, so
// they may only return an address.
#include <array>
#include <string_view>

#include "ipc/signatures.h"
#include "shim/driver/entry_address.h"
#include "shim/driver/local.h"
#include "shim/forward.h"

namespace {

using ipc::Op;

template <Op op, class Signature = ipc::SignatureOf<op>>
struct Stub;
template <Op op, class... A>
struct Stub<op, CUresult(A...)> {
  static CUresult Forward(A... a) {
    const void* const values[] = {&a..., nullptr};
    return static_cast<CUresult>(shim::ForwardDriver(op, values));
  }
  static CUresult Deny(A...) { return static_cast<CUresult>(shim::Deny(op)); }
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
#include "ipc/calls/driver.inc"
#undef CALL

namespace shim {

void* EntryAddress(std::string_view symbol) {
  // Filled at load by the dynamic linker.
  static void* const kEntries[] = {
#define CALL(fn, ...) reinterpret_cast<void*>(&::fn),
#include "ipc/calls/driver.inc"
#undef CALL
  };
  const std::optional<Op> op = ipc::OpNamed(symbol);
  if (!op.has_value() || ipc::LibraryOf(*op) != ipc::Library::kDriver) return nullptr;
  return kEntries[ipc::IndexOf(*op)];
}

}  // namespace shim
