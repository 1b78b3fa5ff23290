// Threads of ours in the program's process.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cstdint>

namespace shim {

// The bound of a wait that another thread's wake-up ends: an hour.
inline constexpr int64_t kUntilWokenUs = 3'600'000'000;

// Runs run(self) on a thread that nobody joins and that takes none of the program's signals. False:
// none can be started.
inline bool StartServiceThread(void* (*run)(void*), void* self) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const bool started = pthread_create(&thread, nullptr, run, self) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (started) pthread_detach(thread);
  return started;
}

}  // namespace shim
