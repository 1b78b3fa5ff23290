// What LANEWAY_SOFTGPU asks for: "devices=2,memory=4GiB,sms=8,cc=8.0,sticky=context".
//
// Every key may be left out. A value that can't be used is refused as a whole, with one sentence
// that says what is accepted; nothing is guessed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace softgpu {

struct Config {
  unsigned devices = 1;
  uint64_t memory_bytes = uint64_t{4} << 30;  // of each device
  unsigned sms = 8;
  int cc_major = 8, cc_minor = 0;
  bool check = false;        // look for races, uninitialised reads and leaks (docs/check.md)
  unsigned check_exit = 0;   // what the process then ends with when something was found; 0: its own
  unsigned watchdog_ms = 0;  // how long a grid may run; 0: for ever
  enum class Executor { kAuto, kInterpreter, kLlvm } executor = Executor::kAuto;
  bool cache = true;            // compiled kernels are kept on disk
  std::string timing;           // the table of virtual time (timing_table.h); empty: real time
  bool sticky_context = false;  // a fault poisons its context only, not the process (for tests)
};

inline constexpr const char* kConfigVariable = "LANEWAY_SOFTGPU";

// Returns nothing and fills `error` when `text` isn't understood. An empty text means the defaults.
std::optional<Config> ParseConfig(std::string_view text, std::string* error);

}  // namespace softgpu
