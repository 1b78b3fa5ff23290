// Exports every row of the table under its name, as its kind says. An ifunc takes its type from
// nvml.h, so no parameter list is written here; its resolver runs during relocation and only
// returns an address.
#include "base/vendor_library.h"
#include "nvml/state.h"
#include "nvml/vendor.h"

namespace nvml {
namespace {

enum class Kind { kOurs, kAnswered, kDevice, kSetting };

template <Kind kKind, auto kVendors, auto kOurs, class Signature>
struct Call;

template <Kind kKind, auto kVendors, auto kOurs, class... A>
struct Call<kKind, kVendors, kOurs, nvmlReturn_t (*)(A...)> {
  static nvmlReturn_t Do(A... arguments) {
    State& state = TheState();
    if (!state.initialised()) return NVML_ERROR_UNINITIALIZED;
    if constexpr (kKind == Kind::kSetting) return NVML_ERROR_NO_PERMISSION;
    if constexpr (kKind == Kind::kAnswered || kKind == Kind::kDevice) {
      if (state.on_gpu()) {
        const auto function = TheVendor().*kVendors;
        return function == nullptr ? NVML_ERROR_FUNCTION_NOT_FOUND : function(arguments...);
      }
    }
    if constexpr (kKind == Kind::kOurs || kKind == Kind::kAnswered) return kOurs(arguments...);
    return NVML_ERROR_NOT_SUPPORTED;
  }
};

}  // namespace
}  // namespace nvml

LANEWAY_STAND_IN;

// Resolvers are hidden, not static: clang drops a static one that only the attribute names.
#define EXPORT(name, address)                                                            \
  extern "C" {                                                                           \
  decltype(&::name) Resolve_##name() { return address; }                                 \
  __attribute__((ifunc("Resolve_" #name), visibility("default"))) decltype(::name) name; \
  }
#define CALL(kind, name, ours) \
  EXPORT(name, (&nvml::Call<nvml::Kind::kind, &nvml::Vendor::name, ours, decltype(&::name)>::Do))
#define ALWAYS(name) EXPORT(name, &nvml::ours::name)
#define OURS(name) CALL(kOurs, name, &nvml::ours::name)
#define ANSWERED(name) CALL(kAnswered, name, &nvml::ours::name)
#define DEVICE(name) CALL(kDevice, name, nullptr)
#define SETTING(name) CALL(kSetting, name, nullptr)
#include "ipc/calls/nvml.inc"
#undef CALL
#undef EXPORT
