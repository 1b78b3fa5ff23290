// How much a random test tries: LANEWAY_TEST_EVENTS=N, or what the test usually tries.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace harness {

// Under a sanitizer a random test takes many times as long, and tries less.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

inline uint64_t Events(uint64_t usual) {
  const char* const given = std::getenv("LANEWAY_TEST_EVENTS");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : usual;
}
inline uint64_t Events(uint64_t usual, uint64_t sanitized) {
  return Events(kSanitized ? sanitized : usual);
}

}  // namespace harness
