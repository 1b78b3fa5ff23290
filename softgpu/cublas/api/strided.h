// A BLAS vector: n elements `step` apart; a negative step starts at the far end.
#pragma once

#include <cstdint>
#include <vector>

namespace softgpu::cublas {

template <class T>
class Strided {
 public:
  Strided(T* data, int64_t count, int64_t step)
      : first_(step < 0 ? data - (count - 1) * step : data), step_(step) {}
  T& operator[](int64_t index) const { return first_[index * step_]; }
  T* first() const { return first_; }

 private:
  T* first_;
  int64_t step_;
};

// A contiguous copy.
template <class T>
std::vector<T> Gather(const T* data, int64_t count, int64_t step) {
  const Strided<const T> source(data, count, step);
  std::vector<T> result(count);
  for (int64_t i = 0; i < count; ++i) result[i] = source[i];
  return result;
}

}  // namespace softgpu::cublas
