// What the tests of kernels stand on: the modules in a context of the bare software GPU, and arrays
// that exist twice, on the device for the kernel and on the host for its reference.
#pragma once

#include <cuda.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "kernels/llm/launch.h"
#include "tests/harness/events.h"
#include "tests/softgpu/driver_test.h"

namespace kernels::llm {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

enum class Side { kHost, kDevice };

// How many random shapes each test tries: LANEWAY_KERNEL_SHAPES, 40 without it, and 8 under a
// sanitizer.
inline int Shapes() {
  const char* const given = std::getenv("LANEWAY_KERNEL_SHAPES");
  return given != nullptr      ? std::max(1, static_cast<int>(std::strtol(given, nullptr, 10)))
         : harness::kSanitized ? 8
                               : 40;
}

class Device {
 public:
  Device() {
    EXPECT_OK(cuInit(0));
    EXPECT_OK(cuCtxCreate(&context_, nullptr, 0, 0));
    const Ptx ptx = PtxOfKernels();
    for (const char* const text : {ptx.rows, ptx.attention, ptx.sampling}) {
      modules_.emplace_back();
      EXPECT_OK(cuModuleLoadData(&modules_.back(), text));
    }
  }
  ~Device() {
    for (const CUmodule module : modules_) EXPECT_OK(cuModuleUnload(module));
    EXPECT_OK(cuCtxDestroy(context_));
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  template <typename Arguments>
  void Run(Arguments arguments) {
    const Launch launch = LaunchOf(arguments);
    void* parameters[] = {&arguments};
    EXPECT_OK(cuLaunchKernel(Function(launch.kernel), launch.grid[0], launch.grid[1],
                             launch.grid[2], launch.block[0], launch.block[1], launch.block[2], 0,
                             nullptr, parameters, nullptr));
    EXPECT_OK(cuCtxSynchronize());
  }

 private:
  CUfunction Function(const std::string& name) {
    CUfunction& function = functions_[name];
    for (const CUmodule module : modules_) {
      if (function == nullptr) cuModuleGetFunction(&function, module, name.c_str());
    }
    EXPECT_NE(function, nullptr) << name;
    return function;
  }

  CUcontext context_ = nullptr;
  std::vector<CUmodule> modules_;
  std::map<std::string, CUfunction> functions_;
};

// An array on both sides. The kernel's results are fetched into a vector of their own, because the
// reference has written the host's side.
template <typename T>
class Array {
 public:
  // The device's side is uninitialised until Upload().
  explicit Array(size_t count, T value = {}) : host(count, value) {
    EXPECT_OK(cuMemAlloc(&device_, std::max<size_t>(1, count) * sizeof(T)));
  }
  explicit Array(std::vector<T> values) : Array(values.size()) {
    host = std::move(values);
    Upload();
  }
  ~Array() { EXPECT_OK(cuMemFree(device_)); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  void Upload() { EXPECT_OK(cuMemcpyHtoD(device_, host.data(), host.size() * sizeof(T))); }
  std::vector<T> Fetch() const {
    std::vector<T> values(host.size());
    EXPECT_OK(cuMemcpyDtoH(values.data(), device_, values.size() * sizeof(T)));
    return values;
  }
  T* On(Side side) {
    return side == Side::kHost ? host.data() : std::bit_cast<T*>(static_cast<uintptr_t>(device_));
  }

  std::vector<T> host;

 private:
  CUdeviceptr device_ = 0;
};

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  // Of [low, high].
  int32_t Int(int32_t low, int32_t high) {
    return std::uniform_int_distribution<int32_t>(low, high)(engine_);
  }
  bool Chance(int percent) { return Int(1, 100) <= percent; }
  std::vector<float> Floats(size_t count, float scale = 1) {
    std::normal_distribution<float> normal(0, scale);
    std::vector<float> values(count);
    for (float& value : values) value = normal(engine_);
    return values;
  }
  template <typename T>
  void Shuffle(std::vector<T>* values) {
    std::shuffle(values->begin(), values->end(), engine_);
  }

 private:
  std::mt19937_64 engine_;
};

// The first element that is further from the reference than `tolerance` of it allows; none: "".
// Where the reference is NaN the kernel must have written nothing but NaN.
template <typename T>
std::string Difference(const std::vector<T>& expected, const std::vector<T>& actual,
                       double tolerance) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const double want = static_cast<double>(expected[i]);
    const double got = static_cast<double>(actual[i]);
    if (std::isnan(want) && std::isnan(got)) continue;
    if (std::abs(want - got) <= tolerance * (1 + std::abs(want))) continue;
    return "element " + std::to_string(i) + " is " + std::to_string(got) + ", expected " +
           std::to_string(want);
  }
  return "";
}

}  // namespace kernels::llm
