// The thread's error state and the names of errors. These calls record nothing.
#include <cstdio>
#include <string>

#include "base/cuda_log_file.h"
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

namespace {

std::string Sentence(const char* name, const char* reason) {
  return std::string("cudart: ") + name + " is not supported: " + reason;
}

}  // namespace

int Refuse(const char* name, const char* reason, std::atomic<bool>* said) {
  if (!said->exchange(true)) base::AppendToCudaLogFile(Sentence(name, reason));
  return Record(cudaErrorNotSupported);
}

int RefuseAloud(const char* name, const char* reason, std::atomic<bool>* said) {
  if (!said->exchange(true)) std::fprintf(stderr, "%s\n", Sentence(name, reason).c_str());
  return Record(cudaErrorNotSupported);
}

}  // namespace runtime
