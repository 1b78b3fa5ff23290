// What all parts of a simulated world share: the time, the chance of this step, the programs, and
// the place where a broken promise is noted. Thread safety: one thread.
#pragma once

#include <cstdint>
#include <cstdio>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "ipc/calls/limits.h"
#include "tests/protocol/dice.h"

namespace protocol {

// All sizes are multiples of it.
inline constexpr uint64_t kUnit = ipc::limits::kExtentBytesMin;

// One call of a program.
struct Op {
  enum Kind { kWork, kBoundary, kAllocate, kFree, kLane, kLaneBack };
  Kind kind = kWork;
  uint64_t units = 0;   // kAllocate, kLane
  bool blocks = false;  // kWork: afterwards something lives in the lane, until the boundary
  bool live = false;    // something lives there already
  bool WaitsForAnswer() const { return kind != kWork && kind != kBoundary; }
};

// What lanewayd keeps of a session while its memory is on the host.
struct SwapFile {
  bool held = false;
  bool with_lane = false;
  std::vector<std::pair<uint64_t, uint64_t>> ranges;  // address, bytes
};

// A program, with what it shares with whichever worker serves it.
struct Program {
  uint64_t session = 0;  // 0: has not said hello
  bool alive = true;
  bool lost = false;  // told that its session is gone
  bool contained = false;
  bool stays = false;             // nobody else can take it over
  bool iterates = true;           // it has boundaries
  std::deque<Op> ring;            // calls that its worker has not completed
  bool quiet = false;             // all that its worker has completed is complete on the device
  bool blocks = false;            // something of it lives in its lane, by its own word
  uint64_t lane_units = 0;        // what it has asked of its lane
  uint64_t lane_asked = 0;        // the same, with what it asks for now
  uint64_t persistent_units = 0;  // what it was given
  uint64_t next_address = 0;      // offset of its next range
  SwapFile swap;
};

// What befalls a world besides delay and the ends of programs.
struct Disturbances {
  bool daemons = false;  // lanewayd dies, and another adopts what runs
  bool workers = false;
  bool keepers = false;
  bool upgrades = false;
  bool pauses = false;
};

struct Scene {
  Dice dice{0};
  int64_t now_us = 1'000'000;
  uint64_t changes = 0;  // grows whenever anything happens: a world at rest adds nothing
  bool verbose = false;
  bool calm = false;                      // nothing fails by chance any more
  std::string failure;                    // the first broken promise; empty: none
  std::map<uint64_t, Program*> programs;  // by session

  void Fail(const std::string& promise) {
    if (failure.empty()) failure = promise;
  }
  void Require(bool holds, const char* promise) {
    if (!holds) Fail(promise);
  }
  void Change() { ++changes; }
  Program* Find(uint64_t session) const {
    const std::map<uint64_t, Program*>::const_iterator found = programs.find(session);
    return found == programs.end() ? nullptr : found->second;
  }
};

// One line of the trace, when it is printed.
#define PROTOCOL_SAY(scene, ...)                  \
  do {                                            \
    if ((scene)->verbose) {                       \
      std::fprintf(stdout, "      " __VA_ARGS__); \
      std::fputc('\n', stdout);                   \
    }                                             \
  } while (false)

}  // namespace protocol
