// The device for tests of cuBLAS: memory and streams over the driver interface of the software GPU
// that this build made.
#pragma once

#include <cublas_v2.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "ipc/calls/vendor.h"
#include "softgpu/cublas/core/types.h"

namespace softgpu::cublas {

// Loads it, initializes it, and makes the first device's primary context current.
// Every member fails the test loudly when the driver returns an error.
class Device {
 public:
  static const Device& Get();

  void* Allocate(size_t bytes) const;
  void Free(void* address) const;
  void CopyIn(void* device, const void* host, size_t bytes) const;
  void CopyOut(void* host, const void* device, size_t bytes) const;
  CUstream CreateStream() const;
  void DestroyStream(CUstream stream) const;
  void Synchronize() const;
  void LaunchHost(CUstream stream, CUhostFn function, void* data) const;
  template <class F>
  F* Function(const char* name) const {
    return reinterpret_cast<F*>(Find(name));
  }

 private:
  Device();
  void* Find(const char* name) const;

  void* library_;
};

// An array in device memory. Reading it waits for the device.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& values) : size_(values.size()) {
    data_ = static_cast<T*>(Device::Get().Allocate(std::max<size_t>(1, size_) * sizeof(T)));
    Write(values);
  }
  ~DeviceArray() { Device::Get().Free(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  void Write(const std::vector<T>& values) {
    if (!values.empty()) Device::Get().CopyIn(data_, values.data(), values.size() * sizeof(T));
  }
  std::vector<T> Read() const {
    std::vector<T> values(size_);
    Device::Get().Synchronize();
    if (size_ != 0) Device::Get().CopyOut(values.data(), data_, size_ * sizeof(T));
    return values;
  }
  T* get() const { return data_; }

 private:
  T* data_ = nullptr;
  size_t size_;
};

class CublasTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Device::Get();
    ASSERT_EQ(cublasCreate(&handle_), CUBLAS_STATUS_SUCCESS);
  }
  void TearDown() override {
    if (handle_ != nullptr) {
      EXPECT_EQ(cublasDestroy(handle_), CUBLAS_STATUS_SUCCESS);
    }
  }
  cublasHandle_t handle_ = nullptr;
};

}  // namespace softgpu::cublas
