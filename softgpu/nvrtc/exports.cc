// Exports every row of the table under its name. An ifunc takes its type from nvrtc.h, so no
// parameter list is written here; its resolver runs during relocation and only returns an address.
#include "base/vendor_library.h"
#include "softgpu/nvrtc/machine_code.h"
#include "softgpu/nvrtc/vendor.h"

namespace softgpu::nvrtc {
namespace {

template <auto kMember, class Signature>
struct Passed;

template <auto kMember, class Result, class... A>
struct Passed<kMember, Result (*)(A...)> {
  static Result Call(A... arguments) {
    const auto function = TheVendor().*kMember;
    return function == nullptr ? Missing<Result>() : function(arguments...);
  }
};

}  // namespace
}  // namespace softgpu::nvrtc

LANEWAY_STAND_IN;

// Resolvers are hidden, not static: clang drops a static one that only the attribute names.
#define EXPORT(name, address)                                                            \
  extern "C" {                                                                           \
  decltype(&::name) Resolve_##name() { return address; }                                 \
  __attribute__((ifunc("Resolve_" #name), visibility("default"))) decltype(::name) name; \
  }
#define PASSED(name) \
  EXPORT(name, (&softgpu::nvrtc::Passed<&softgpu::nvrtc::Vendor::name, decltype(&::name)>::Call))
#define OURS(name) EXPORT(name, &softgpu::nvrtc::ours::name)
#include "ipc/calls/nvrtc.inc"
#undef OURS
#undef PASSED
#undef EXPORT
