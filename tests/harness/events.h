// How much a random test tries: LANEWAY_TEST_EVENTS=N, or what the test usually tries.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace harness {

inline uint64_t Events(uint64_t usual) {
  const char* const given = std::getenv("LANEWAY_TEST_EVENTS");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : usual;
}

}  // namespace harness
