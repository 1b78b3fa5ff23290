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

#include "softgpu/cublas/core/handle.h"

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

template <auto kImplementation, class Signature>
struct Entry;

template <auto kImplementation, class... A>
struct Entry<kImplementation, cublasStatus_t(cublasHandle_t, A...)> {
  static cublasStatus_t Call(cublasHandle_t opaque, A... arguments) noexcept {
    Handle* const handle = Handle::From(opaque);
    if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
    try {
      return kImplementation(*handle, Native(arguments)...);
    } catch (const std::bad_alloc&) {
      return CUBLAS_STATUS_ALLOC_FAILED;
    }
  }
};

// For functions without a handle, written in the vendor's own types.
template <auto kImplementation, class R, class... A>
requires(
    std::is_same_v<decltype(kImplementation), R (*)(A...)>) struct Entry<kImplementation, R(A...)> {
  static R Call(A... arguments) noexcept { return kImplementation(arguments...); }
};

}  // namespace softgpu::cublas

// The resolver of an ifunc runs during relocation: it may only return an address.
#define SOFTGPU_EXPORT(fn, ...)                                                    \
  extern "C" LANEWAY_SIGNATURE(fn) * softgpu_resolve_##fn() {                      \
    return &::softgpu::cublas::Entry<(__VA_ARGS__), LANEWAY_SIGNATURE(fn)>::Call;  \
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
