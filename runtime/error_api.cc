// The thread's error state and the names of errors. These calls record nothing.
#include <cstdio>

#include "runtime/api.h"
#include "runtime/error.h"
#include "runtime/refused.h"
#include "runtime/thread_state.h"

namespace runtime::api {

// An error that made the context unusable is returned forever; others once.
cudaError_t cudaGetLastError() {
  ThreadState& thread = Thread();
  const cudaError_t error = thread.last_error;
  thread.last_error = thread.sticky_error;
  return error;
}

cudaError_t cudaPeekAtLastError() { return Thread().last_error; }

const char* cudaGetErrorName(cudaError_t error) { return ErrorName(error); }
const char* cudaGetErrorString(cudaError_t error) { return ErrorText(error); }

}  // namespace runtime::api

namespace runtime {

int Refuse(const char* name, const char* reason, std::atomic<bool>* said) {
  if (!said->exchange(true)) {
    std::fprintf(stderr, "cudart: %s is not supported: %s\n", name, reason);
  }
  return Record(cudaErrorNotSupported);
}

}  // namespace runtime
