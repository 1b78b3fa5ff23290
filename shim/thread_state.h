// The client's state of each thread of the program: the thread's number in message headers, the
// stack of current contexts, the thread's default stream in each context, how its waits spin, and
// the launches that it knows. Thread safety: each thread sees its own; the number is process-wide
// unique.
#pragma once

#include <cstdint>
#include <vector>

#include "shim/known_launches.h"
#include "shim/wait_spin.h"

namespace shim {

struct ThreadState {
  uint32_t number = 0;
  std::vector<uint64_t> contexts;  // program values; the last one is current
  struct DefaultStream {
    uint64_t context;
    uint64_t stream;
  };
  std::vector<DefaultStream> default_streams;
  WaitSpin spin;  // of its waits for the device
  KnownLaunches launches;
};

// The calling thread's state, made on first use.
ThreadState& ThisThread();

// Called at a thread's end with its state, before it is freed; set once by the state's owner
// (client.cc).
void SetThreadEndHook(void (*hook)(ThreadState&));

}  // namespace shim
