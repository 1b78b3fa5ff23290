// The variables by which Laneway tells programs that it starts where its daemon is, and which job
// they belong to. A front that runs without Laneway has none of them. Thread safety: stateless,
// while nothing changes the environment.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/numbers.h"

namespace serve::front {

// Where Laneway's processes meet; empty: nowhere.
inline std::string RuntimeDirectory() {
  const char* const directory = std::getenv("LANEWAY_RUNTIME_DIR");
  return directory == nullptr ? "" : directory;
}

// The number of the job that the front belongs to; 0: none. The ticket by which programs join the
// job begins with the number, for people to read.
inline uint64_t JobNumber() {
  const char* const ticket = std::getenv("LANEWAY_JOB");
  const std::string text = ticket == nullptr ? "" : ticket;
  uint64_t number = 0;
  return absl::SimpleAtoi(text.substr(0, text.find('-')), &number) ? number : 0;
}

}  // namespace serve::front
