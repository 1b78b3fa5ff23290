#include "shim/thread_state.h"

#include <pthread.h>

#include <atomic>

namespace shim {
namespace {

std::atomic<void (*)(ThreadState&)> end_hook{nullptr};
std::atomic<uint32_t> last_number{0};
thread_local ThreadState* this_thread = nullptr;

// A pthread key, not a thread_local destructor: those run before destructors of the program's own
// thread_local objects may call CUDA for the last time; a key's destructor runs after them all.
void EndThread(void* state) {
  ThreadState* const ending = static_cast<ThreadState*>(state);
  this_thread = ending;
  if (void (*hook)(ThreadState&) = end_hook.load(); hook != nullptr) hook(*ending);
  this_thread = nullptr;
  delete ending;
}

ThreadState& MakeThreadState() {
  static const pthread_key_t key = [] {
    pthread_key_t made;
    return pthread_key_create(&made, EndThread) == 0 ? made : pthread_key_t(-1);
  }();
  this_thread = new ThreadState;
  this_thread->number = last_number.fetch_add(1, std::memory_order_relaxed) + 1;
  if (key != pthread_key_t(-1)) pthread_setspecific(key, this_thread);
  return *this_thread;
}

}  // namespace

ThreadState& ThisThread() {
  ThreadState* const state = this_thread;
  return state != nullptr ? *state : MakeThreadState();
}

void SetThreadEndHook(void (*hook)(ThreadState&)) { end_hook.store(hook); }

}  // namespace shim
