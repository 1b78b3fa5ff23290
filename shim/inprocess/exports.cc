// libcuda.so.1's exports: every row of the driver's table under its own name. Most calls go
// straight to the driver behind. An operation of the device waits for the program's turn. A call
// that waits for the device is marked as a wait of the host. Some calls have a function of
// Laneway's (own.h).
#include <string_view>
#include <type_traits>
#include <unordered_map>

#include "shim/inprocess/next_driver.h"
#include "shim/inprocess/own.h"
#include "shim/inprocess/process.h"
#include "shim/inprocess/token.h"

namespace shim::inprocess {
namespace {

enum class Class { kPlain, kWork, kWorkAndWait, kWait };

constexpr bool Contains(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

consteval Class ClassOf(std::string_view name) {
  if (Contains(name, "Synchronize")) return Class::kWait;
  if (name.starts_with("cuLaunchHostFunc")) return Class::kPlain;
  if (name.starts_with("cuLaunch") || name.starts_with("cuGraphLaunch") ||
      name.starts_with("cuMemset")) {
    return Class::kWork;
  }
  if (!name.starts_with("cuMemcpy")) return Class::kPlain;
  const bool waits = !Contains(name, "Async") &&
                     (Contains(name, "toH") || name == "cuMemcpy" || name == "cuMemcpy_ptds");
  return waits ? Class::kWorkAndWait : Class::kWork;
}

consteval bool Computes(std::string_view name) {
  return name.starts_with("cuLaunch") || name.starts_with("cuGraphLaunch");
}

// Call: kName, kOp, Own(), Behind().
template <class Call, class Signature>
struct Entry;

template <class Call, class R, class... A>
struct Entry<Call, R(A...)> {
  static R Invoke(A... a) {
    constexpr Class kClass = ClassOf(Call::kName);
    R (*const next)(A...) = Call::Behind();
    if (next == nullptr) return static_cast<R>(CUDA_ERROR_NOT_SUPPORTED);
    if constexpr (kClass == Class::kWait) {
      const HostWait wait;
      return next(a...);
    } else if constexpr (kClass == Class::kWork) {
      const Passage passage(TokenOf(Call::kOp, Computes(Call::kName), a...));
      return next(a...);
    } else if constexpr (kClass == Class::kWorkAndWait) {
      const Passage passage(TokenOf(Call::kOp, false, a...));
      const HostWait wait;
      return next(a...);
    } else {
      return next(a...);
    }
  }
};

#define CALL(fn, ...)                                                                    \
  struct Call_##fn {                                                                     \
    static constexpr std::string_view kName = #fn;                                       \
    static constexpr ipc::Op kOp = ipc::Op::fn;                                          \
    static decltype(::fn)* Behind() { return Next().fn; }                                \
    static decltype(::fn)* Exported() {                                                  \
      return &own::fn != nullptr ? &own::fn : &Entry<Call_##fn, decltype(::fn)>::Invoke; \
    }                                                                                    \
  };
#include "ipc/calls/driver.inc"
#undef CALL

struct Symbol {
  void* entry = nullptr;
  bool passes = false;
};

}  // namespace

void* EntryAddress(const char* symbol, bool* passes) {
  static const auto* const symbols = new std::unordered_map<std::string_view, Symbol>{
#define CALL(fn, ...)                               \
  {#fn,                                             \
   {reinterpret_cast<void*>(Call_##fn::Exported()), \
    &own::fn == nullptr && ClassOf(#fn) == Class::kPlain}},
#include "ipc/calls/driver.inc"
#undef CALL
  };
  const auto found = symbols->find(symbol);
  if (found == symbols->end()) return nullptr;
  *passes = found->second.passes;
  return found->second.entry;
}

}  // namespace shim::inprocess

// Resolvers run during relocation: they may only return an address.
#define CALL(fn, ...)                                 \
  extern "C" decltype(::fn)* laneway_resolve_##fn();  \
  extern "C" decltype(::fn)* laneway_resolve_##fn() { \
    return shim::inprocess::Call_##fn::Exported();    \
  }                                                   \
  extern "C"                                          \
      __attribute__((ifunc("laneway_resolve_" #fn), visibility("default"))) decltype(::fn) fn;
#include "ipc/calls/driver.inc"
#undef CALL
