// What a cublasHandle_t points to, and how a call's scalars and results obey its pointer mode.
//
// cublasLt accepts a cublasHandle_t as its own handle, so one type serves both. As in cuBLAS, calls
// on one handle from several threads are allowed, changing its settings meanwhile isn't.
#pragma once

#include <cublas_v2.h>

#include <cstdint>
#include <functional>
#include <utility>

#include "softgpu/cublas/core/convert.h"
#include "softgpu/cublas/core/stream_work.h"

namespace softgpu::cublas {

struct Handle {
  static constexpr uint64_t kAlive = 0x73616c6275632001;

  // nullptr unless `handle` came from Create and wasn't destroyed.
  template <class Opaque>
  static Handle* From(Opaque handle) {
    Handle* const result = reinterpret_cast<Handle*>(handle);
    return result != nullptr && result->state == kAlive ? result : nullptr;
  }

  // Needs a driver; makes a context current if there is none.
  SOFTGPU_CUBLAS_CORE static cublasStatus_t Create(Handle** handle);
  SOFTGPU_CUBLAS_CORE static cublasStatus_t Destroy(Handle* handle);

  bool device_pointers() const { return pointer_mode == CUBLAS_POINTER_MODE_DEVICE; }

  // Queues `work` on the handle's stream.
  cublasStatus_t Submit(std::function<void()> work) const {
    return EnqueueOn(stream, std::move(work));
  }

  // As Submit, for work that writes a scalar result: in host pointer mode the result is there when
  // the call returns.
  SOFTGPU_CUBLAS_CORE cublasStatus_t SubmitForResult(std::function<void()> work) const;

  uint64_t state = kAlive;
  CUstream stream = nullptr;
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
  cublasAtomicsMode_t atomics_mode = CUBLAS_ATOMICS_NOT_ALLOWED;
  cublasMath_t math_mode = CUBLAS_DEFAULT_MATH;
  int sm_count_target = 0;
  cublasEmulationStrategy_t emulation_strategy = CUBLAS_EMULATION_STRATEGY_DEFAULT;
  cudaEmulationSpecialValuesSupport emulation_special_values =
      CUDA_EMULATION_SPECIAL_VALUES_SUPPORT_DEFAULT;
  cudaEmulationMantissaControl emulation_mantissa_control = CUDA_EMULATION_MANTISSA_CONTROL_DYNAMIC;
  int emulation_mantissa_bits_max = 0;
  int emulation_mantissa_bit_offset = 0;
  int* emulation_mantissa_bit_count = nullptr;
};

// A scalar argument: its value now in host pointer mode, its address in device pointer mode, where
// it is read when the work runs. REQUIRES: the pointer isn't null.
template <class T>
class Scalar {
 public:
  Scalar(const Handle& handle, const T* pointer) : Scalar(handle.device_pointers(), pointer) {}
  Scalar(bool on_device, const T* pointer)
      : value_(on_device ? T{} : *pointer), device_(on_device ? pointer : nullptr) {}
  T operator()() const { return device_ == nullptr ? value_ : *device_; }

 private:
  T value_;
  const T* device_;
};

// The same for a scalar whose type is known at run time, read as E.
template <class E>
class TypedScalar {
 public:
  TypedScalar(bool on_device, const void* pointer, cudaDataType type)
      : type_(type), device_(on_device ? pointer : nullptr) {
    if (!on_device) value_ = LoadOne<E>(pointer, type);
  }
  E operator()() const { return device_ == nullptr ? value_ : LoadOne<E>(device_, type_); }

 private:
  E value_{};
  cudaDataType type_;
  const void* device_;
};

}  // namespace softgpu::cublas
