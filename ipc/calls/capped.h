// Sums and products of byte counts that a program gave: UINT64_MAX where there is no such number,
// which no memory holds. Thread safety: pure functions.
#pragma once

#include <cstdint>

namespace ipc {

inline uint64_t CappedProduct(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

inline uint64_t CappedSum(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

}  // namespace ipc
