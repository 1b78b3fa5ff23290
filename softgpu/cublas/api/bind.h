// Exports a vendor entry point from an implementation written once for all widths.
//
// Implementations take a checked Handle&, int64_t for every integer, std::complex for cuComplex,
// Half and Bfloat16 for the small floats, so one template serves `cublasSgemm_v2` and
// `cublasZgemm_v2_64` alike. Entry adapts such a function to the vendor's signature, which comes
// from the headers (LANEWAY_SIGNATURE) and is never written again. Names that nothing exports here
// are refused (refuse.cc): its definitions are weak, so an EXPORT replaces them.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <new>
#include <optional>

#include "softgpu/cublas/core/handle.h"
#include "softgpu/cublas/core/operands.h"

namespace softgpu::cublas {

// An argument in the implementation's types.
template <class T>
struct NativeT {
  using type = T;
};
template <>
struct NativeT<int> {
  using type = int64_t;
};
template <>
struct NativeT<long long> {
  using type = int64_t;
};
#define SOFTGPU_CUBLAS_NATIVE(vendor, native) \
  template <>                                 \
  struct NativeT<vendor*> {                   \
    using type = native*;                     \
  };                                          \
  template <>                                 \
  struct NativeT<const vendor*> {             \
    using type = const native*;               \
  };                                          \
  template <>                                 \
  struct NativeT<vendor* const*> {            \
    using type = native* const*;              \
  };                                          \
  template <>                                 \
  struct NativeT<const vendor* const*> {      \
    using type = const native* const*;        \
  };
SOFTGPU_CUBLAS_NATIVE(cuComplex, Complex64)
SOFTGPU_CUBLAS_NATIVE(cuDoubleComplex, Complex128)
SOFTGPU_CUBLAS_NATIVE(__half, Half)
SOFTGPU_CUBLAS_NATIVE(__nv_bfloat16, Bfloat16)
#undef SOFTGPU_CUBLAS_NATIVE

template <class T>
typename NativeT<T>::type Native(T value) {
  using To = typename NativeT<T>::type;
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

// What a pointer argument, or each pointer of an array, points at; 0: bytes of a type that another
// parameter tells.
template <class T>
constexpr int64_t PointedBytes() {
  using To = std::remove_cv_t<std::remove_pointer_t<T>>;
  if constexpr (!std::is_pointer_v<T> || std::is_void_v<To>) {
    return 0;
  } else if constexpr (std::is_pointer_v<To>) {
    return PointedBytes<To>();
  } else if constexpr (requires { sizeof(To); }) {
    return sizeof(To);
  } else {
    return 0;  // a handle
  }
}

template <class T>
int64_t NumberOf(T value) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<int64_t>(value);
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    return static_cast<int64_t>(value);
  } else {
    return 0;
  }
}

// The call's description, when the function touches device memory.
template <class... A>
std::optional<CallRecord> RecordOf(const char* name, const ipc::blas::Family* family,
                                   const Handle& handle, A... arguments) {
  static_assert(sizeof...(A) < CallRecord::kParametersMax);
  if (family == nullptr) return std::nullopt;
  CallRecord record(name, family);
  size_t index = 0;  // the handle's
  (record.Set(++index, NumberOf(arguments), PointedBytes<A>()), ...);
  record.SetDeviceScalars(handle.device_pointers());
  record.NoteZeros();
  return record;
}

template <auto kImplementation, class Signature, class Name>
struct Entry;

template <auto kImplementation, class Name, class... A>
requires(!std::is_same_v<decltype(kImplementation), cublasStatus_t (*)(cublasHandle_t, A...)>)  //
    struct Entry<kImplementation, cublasStatus_t(cublasHandle_t, A...), Name> {
  static cublasStatus_t Call(cublasHandle_t opaque, A... arguments) noexcept {
    static const ipc::blas::Family* const family = ipc::blas::FamilyOf(Name::kText);
    Handle* const handle = Handle::From(opaque);
    if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
    try {
      const std::optional<CallRecord> record = RecordOf(Name::kText, family, *handle, arguments...);
      const CallScope scope(record ? &*record : nullptr);
      return kImplementation(*handle, Native(arguments)...);
    } catch (const std::bad_alloc&) {
      return CUBLAS_STATUS_ALLOC_FAILED;
    }
  }
};

// For functions without a handle, written in the vendor's own types.
template <auto kImplementation, class Name, class R, class... A>
requires(std::is_same_v<decltype(kImplementation), R (*)(A...)>) struct Entry<kImplementation,
                                                                              R(A...), Name> {
  static R Call(A... arguments) noexcept { return kImplementation(arguments...); }
};

}  // namespace softgpu::cublas

// The resolver of an ifunc runs during relocation: it may only return an address.
#define SOFTGPU_EXPORT(fn, ...)                                                    \
  namespace softgpu::cublas::names {                                               \
  struct Name_##fn {                                                               \
    static constexpr char kText[] = #fn;                                           \
  };                                                                               \
  }                                                                                \
  extern "C" LANEWAY_SIGNATURE(fn) * softgpu_resolve_##fn() {                      \
    return &::softgpu::cublas::Entry<(__VA_ARGS__), LANEWAY_SIGNATURE(fn),         \
                                     ::softgpu::cublas::names::Name_##fn>::Call;   \
  }                                                                                \
  extern "C" __attribute__((ifunc("softgpu_resolve_" #fn), visibility("default"))) \
  LANEWAY_SIGNATURE(fn) fn;

// With the variant that takes 64-bit sizes.
#define SOFTGPU_EXPORT_BOTH(fn, ...) \
  SOFTGPU_EXPORT(fn, __VA_ARGS__)    \
  SOFTGPU_EXPORT(fn##_64, __VA_ARGS__)

// cublasS<name>, cublasD<name>, ... from one template over the element type.
#define SOFTGPU_EXPORT_SD(name, implementation)             \
  SOFTGPU_EXPORT_BOTH(cublasS##name, implementation<float>) \
  SOFTGPU_EXPORT_BOTH(cublasD##name, implementation<double>)
#define SOFTGPU_EXPORT_CZ(name, implementation)                 \
  SOFTGPU_EXPORT_BOTH(cublasC##name, implementation<Complex64>) \
  SOFTGPU_EXPORT_BOTH(cublasZ##name, implementation<Complex128>)
#define SOFTGPU_EXPORT_SDCZ(name, implementation) \
  SOFTGPU_EXPORT_SD(name, implementation)         \
  SOFTGPU_EXPORT_CZ(name, implementation)
