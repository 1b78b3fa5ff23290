// What every example needs: checked CUDA calls, a fingerprint of a buffer, and a stopwatch.
//
// Output rule of the examples: standard output is the same, byte for byte, in every run on the same
// kind of device; a line that carries a time starts with "time:", so that a comparison can leave it
// out.
#pragma once

#include <cuda_runtime.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

inline void CheckCuda(cudaError_t status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s:%d: %s: %s (%d)\n", file, line, call, cudaGetErrorString(status),
               static_cast<int>(status));
  std::exit(1);
}
#define CUDA_CHECK(call) CheckCuda((call), #call, __FILE__, __LINE__)

// FNV-1a over the bytes of `values`: two runs that print the same fingerprint computed the same
// bits.
template <typename T>
uint64_t Fingerprint(const std::vector<T>& values) {
  uint64_t hash = 0xcbf29ce484222325ull;
  const unsigned char* bytes = reinterpret_cast<const unsigned char*>(values.data());
  for (size_t i = 0; i < values.size() * sizeof(T); ++i)
    hash = (hash ^ bytes[i]) * 0x100000001b3ull;
  return hash;
}

inline double NowMs() {
  const std::chrono::duration<double, std::milli> now =
      std::chrono::steady_clock::now().time_since_epoch();
  return now.count();
}

// The number in argv[index], `otherwise` when there is none, and 0 when it is not a number from 1
// to 2^31 - 1.
inline int IntArgument(int argc, char** argv, int index, int otherwise) {
  if (argc <= index) return otherwise;
  char* end = nullptr;
  const long value = std::strtol(argv[index], &end, 10);
  return *end == 0 && value > 0 && value <= 0x7fffffff ? static_cast<int>(value) : 0;
}

// A small generator that gives the same numbers everywhere, unlike <random>'s distributions.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2 + 1) {}
  uint32_t Next() {  // PCG-XSH-RR
    const uint64_t old = state_;
    state_ = old * 6364136223846793005ull + 1442695040888963407ull;
    const uint32_t shifted = static_cast<uint32_t>(((old >> 18) ^ old) >> 27);
    const uint32_t turn = static_cast<uint32_t>(old >> 59);
    return (shifted >> turn) | (shifted << ((32 - turn) & 31));
  }
  float Uniform() { return static_cast<float>(Next() >> 8) * 0x1p-24f; }  // [0, 1)

 private:
  uint64_t state_;
};

// A device buffer of `count` values. Owns its memory.
template <typename T>
class DeviceBuffer {
 public:
  explicit DeviceBuffer(size_t count) : count_(count) {
    CUDA_CHECK(cudaMalloc(&data_, count * sizeof(T)));
  }
  explicit DeviceBuffer(const std::vector<T>& values) : DeviceBuffer(values.size()) { Set(values); }
  ~DeviceBuffer() { cudaFree(data_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  void Set(const std::vector<T>& values) {
    CUDA_CHECK(cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  std::vector<T> Get() const {
    std::vector<T> values(count_);
    CUDA_CHECK(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }
  T* get() const { return data_; }
  size_t size() const { return count_; }

 private:
  T* data_ = nullptr;
  size_t count_;
};
