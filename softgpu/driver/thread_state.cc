#include "softgpu/driver/thread_state.h"

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "softgpu/driver/context.h"

namespace softgpu {
namespace {

// Eight bytes of the static TLS block: no call to find them.
__attribute__((tls_model("initial-exec"))) __thread ThreadState* state = nullptr;
pthread_key_t key;
pthread_once_t once = PTHREAD_ONCE_INIT;
std::atomic<uint64_t> next_thread_id{1};

void Forget(void* value) {
  ThreadState* const old = static_cast<ThreadState*>(value);
  Context::ForgetThread(old->id);
  state = nullptr;
  delete old;
}

void MakeKey() { pthread_key_create(&key, &Forget); }

}  // namespace

ThreadState& ThreadState::Get() {
  if (state == nullptr) {
    pthread_once(&once, &MakeKey);
    state = new ThreadState;
    state->id = next_thread_id.fetch_add(1);
    pthread_setspecific(key, state);
  }
  return *state;
}

}  // namespace softgpu
