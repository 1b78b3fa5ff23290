#include "runtime/thread_state.h"

#include <pthread.h>

#include "runtime/error.h"

namespace runtime {
namespace {

thread_local ThreadState* current = nullptr;

void Destroy(void* state) {
  delete static_cast<ThreadState*>(state);
  current = nullptr;
}

// The key's destructor runs after C++ thread_local destructors, and never for a main thread that
// calls exit(): its state simply stays.
ThreadState& Create() {
  static const pthread_key_t key = [] {
    pthread_key_t made;
    pthread_key_create(&made, &Destroy);
    return made;
  }();
  current = new ThreadState;
  pthread_setspecific(key, current);
  return *current;
}

}  // namespace

ThreadState& Thread() { return current != nullptr ? *current : Create(); }

cudaError_t Record(cudaError_t error) {
  if (error == cudaSuccess) return error;
  ThreadState& thread = Thread();
  thread.last_error = error;
  if (IsSticky(error)) thread.sticky_error = error;
  return error;
}

}  // namespace runtime
