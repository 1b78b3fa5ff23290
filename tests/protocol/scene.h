// What all parts of a simulated world share: the time, the chance of this step, the programs, and
// the place where a broken promise is noted. Thread safety: one thread.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>

#include "ipc/calls/limits.h"
#include "tests/protocol/dice.h"
#include "tests/protocol/program.h"

namespace protocol {

// All sizes are multiples of it.
inline constexpr uint64_t kUnit = ipc::limits::kExtentBytesMin;

// What befalls a world besides delay and the ends of programs.
struct Disturbances {
  bool daemons = false;  // lanewayd dies, and another adopts what runs
  bool workers = false;
  bool keepers = false;
  bool upgrades = false;
  bool pauses = false;
  bool in_process = false;  // some programs are
};

struct Scene {
  Dice dice{0};
  int64_t now_us = 1'000'000;
  uint64_t changes = 0;  // grows whenever anything happens: a world at rest adds nothing
  bool verbose = false;
  bool calm = false;    // nothing fails by chance any more
  std::string failure;  // the first broken promise; empty: none
  std::map<pid_t, Program*> programs;

  void Fail(const std::string& promise) {
    if (failure.empty()) failure = promise;
  }
  void Require(bool holds, const char* promise) {
    if (!holds) Fail(promise);
  }
  void Change() { ++changes; }
  Program* Find(pid_t pid) const {
    const std::map<pid_t, Program*>::const_iterator found = programs.find(pid);
    return found == programs.end() ? nullptr : found->second;
  }
};

// The scene whose time the clocks tell that are plain functions.
inline const Scene* clock_scene = nullptr;
inline int64_t VirtualUs() { return clock_scene->now_us; }
inline int64_t VirtualNs() { return VirtualUs() * 1000; }

// One line of the trace, when it is printed.
#define PROTOCOL_SAY(scene, ...)                  \
  do {                                            \
    if ((scene)->verbose) {                       \
      std::fprintf(stdout, "      " __VA_ARGS__); \
      std::fputc('\n', stdout);                   \
    }                                             \
  } while (false)

}  // namespace protocol
