// Exports every row of the driver's call table under its own name.
//
// One template wraps each implementation with the checks that all calls share: initialised in this
// process, no sticky error, which stream 0 means. The _ptds and _ptsz names share the
// implementation of their base name. An ifunc takes its type from cuda.h, so no parameter list is
// written here; its resolver runs during relocation and may only return an address.
#include "softgpu/driver/exports.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <typeinfo>
#include <unordered_map>

#include "base/find.h"
#include "softgpu/driver/api.h"
#include "softgpu/driver/call_scope.h"
#include "softgpu/driver/refusals.h"

namespace softgpu {
namespace {

// What the table knows of a row, whatever its type.
struct Row {
  std::string_view name;
  void* implementation;  // null: nobody defined it
  void* entry;
  const std::type_info* type;
};

const Row* FindRow(std::string_view name);

constexpr bool IsPerThread(std::string_view name) {
  return name.ends_with("_ptds") || name.ends_with("_ptsz");
}

// The implementation of `name`'s base name, which has the same parameters.
template <class Signature>
Signature* BaseImplementation(std::string_view name) {
  const Row* const base = FindRow(name.substr(0, name.size() - 5));
  if (base == nullptr || *base->type != typeid(Signature)) return nullptr;
  return reinterpret_cast<Signature*>(base->implementation);
}

template <class Call, class Signature>
struct Entry;

template <class Call, class... A>
struct Entry<Call, CUresult(A...)> {
  using Signature = CUresult(A...);
  static constexpr bool kPerThread = IsPerThread(Call::kName);

  static Signature* Implementation() {
    if constexpr (kPerThread) {
      static Signature* const base = BaseImplementation<Signature>(Call::kName);
      return base;
    } else {
      return Call::Implementation();
    }
  }

  static CUresult Invoke(A... args) {
    constexpr CallTraits kTraits = TraitsOf(Call::kName);
    const CallScope scope(Call::kName, kPerThread);
    if (const CUresult refused = scope.Check(kTraits); refused != CUDA_SUCCESS) return refused;
    Signature* const implementation = Implementation();
    if (implementation == nullptr) return scope.NotSupported(RefusalReason(Call::kName));
    try {
      return implementation(args...);
    } catch (const std::bad_alloc&) {
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
  }
};

#define CALL(fn, ...)                                            \
  struct Call_##fn {                                             \
    static constexpr const char* kName = #fn;                    \
    static decltype(::fn)* Implementation() { return &api::fn; } \
  };
#include "ipc/calls/driver.inc"
#undef CALL

const std::unordered_map<std::string_view, Row>& Rows() {
  static const auto* const rows = new std::unordered_map<std::string_view, Row>{
#define CALL(fn, ...)                       \
  {#fn,                                     \
   {#fn, reinterpret_cast<void*>(&api::fn), \
    reinterpret_cast<void*>(&Entry<Call_##fn, decltype(::fn)>::Invoke), &typeid(::fn)}},
#include "ipc/calls/driver.inc"
#undef CALL
  };
  return *rows;
}

const Row* FindRow(std::string_view name) { return base::FindOrNull(Rows(), name); }

}  // namespace

void* ExportedAddress(std::string_view name) {
  const Row* const row = FindRow(name);
  return row != nullptr ? row->entry : nullptr;
}

}  // namespace softgpu

#define CALL(fn, ...)                                                   \
  extern "C" decltype(::fn)* resolve_##fn();                            \
  extern "C" decltype(::fn)* resolve_##fn() {                           \
    return &softgpu::Entry<softgpu::Call_##fn, decltype(::fn)>::Invoke; \
  }                                                                     \
  extern "C" __attribute__((ifunc("resolve_" #fn), visibility("default"))) decltype(::fn) fn;
#include "ipc/calls/driver.inc"
#undef CALL
