#include "shim/state.h"

#include "shim/client.h"
#include "shim/thread_state.h"

namespace shim {

State& State::Process() {
  static State* const state = new State;
  return *state;
}

CUresult State::Current(Context** context, uint64_t* value) {
  if (const CUresult result = Client::Process().Ready(); result != CUDA_SUCCESS) return result;
  const ThreadState& thread = ThisThread();
  if (thread.contexts.empty() || thread.contexts.back() == 0) return CUDA_ERROR_INVALID_CONTEXT;
  *context = contexts.Find(thread.contexts.back());
  if (*context == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (!(*context)->active.load(std::memory_order_relaxed)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (value != nullptr) *value = thread.contexts.back();
  return CUDA_SUCCESS;
}

}  // namespace shim
