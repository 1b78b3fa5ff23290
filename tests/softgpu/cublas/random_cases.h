// Random matrices and vectors whose products are exact: small integers, so that a reference and the
// library must agree to the last bit whatever the order of their sums.
//
// The seed is new in every run, or given (tests/harness/seed.h); each test names it when it fails.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "softgpu/cublas/core/convert.h"
#include "tests/harness/seed.h"

namespace softgpu::cublas {

class Random {
 public:
  Random() : seed_(static_cast<uint32_t>(harness::Seed())), generator_(seed_) {}

  std::string Describe() const { return "LANEWAY_TEST_SEED=" + std::to_string(seed_); }

  int64_t Between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(generator_);
  }
  template <class E>
  E Pick(std::initializer_list<E> values) {
    return values.begin()[Between(0, static_cast<int64_t>(values.size()) - 1)];
  }
  // In [-3, 3], with an imaginary part for complex types.
  template <class T>
  T Number() {
    if constexpr (kIsComplex<T>) {
      return T(static_cast<Real<T>>(Between(-3, 3)), static_cast<Real<T>>(Between(-3, 3)));
    } else {
      return ElementTo<T>(static_cast<float>(Between(-3, 3)));
    }
  }
  template <class T>
  std::vector<T> Numbers(int64_t count) {
    std::vector<T> values(count);
    for (T& value : values) value = Number<T>();
    return values;
  }

 private:
  uint32_t seed_;
  std::mt19937 generator_;
};

// Column-major with `ld` between columns; what lies between is part of every comparison.
template <class T>
struct Grid {
  T& operator()(int64_t i, int64_t j) { return data[i + j * ld]; }
  const T& operator()(int64_t i, int64_t j) const { return data[i + j * ld]; }
  bool operator==(const Grid&) const = default;
  int64_t rows = 0, columns = 0, ld = 1;
  std::vector<T> data;
};

template <class T>
Grid<T> RandomGrid(Random& random, int64_t rows, int64_t columns) {
  Grid<T> grid{rows, columns, std::max<int64_t>(1, rows) + random.Between(0, 3), {}};
  grid.data = random.Numbers<T>(grid.ld * std::max<int64_t>(columns, 1));
  return grid;
}

// A vector with a step: storage of count elements, step apart; a negative step starts at the end.
template <class T>
struct Steps {
  T& operator[](int64_t i) { return data[step < 0 ? (i + 1 - count) * step : i * step]; }
  const T& operator[](int64_t i) const {
    return data[step < 0 ? (i + 1 - count) * step : i * step];
  }
  int64_t count = 0, step = 1;
  std::vector<T> data;
};

template <class T>
Steps<T> RandomSteps(Random& random, int64_t count, bool negative_too = true) {
  const int64_t step = random.Between(1, 3) * (negative_too && random.Between(0, 1) ? -1 : 1);
  return {count, step, random.Numbers<T>(std::max<int64_t>(count, 1) * std::abs(step))};
}

}  // namespace softgpu::cublas
