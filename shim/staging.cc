#include "shim/staging.h"

#include <chrono>

#include "shim/client.h"
#include "shim/sync.h"

namespace shim {
namespace {

// How long a thread waits for another thread's chunk without a look at the session.
constexpr std::chrono::microseconds kLookAtSession{kNapUs};

}  // namespace

Staging& Staging::Process() {
  static Staging* const staging = new Staging;
  return *staging;
}

std::byte* Staging::BytesOf(unsigned chunk) {
  return Client::Process().file().staging() + OffsetOf(chunk);
}

// Round robin, so that the chunk longest given back is looked at first.
bool Staging::TakeFree(unsigned* chunk) {
  for (unsigned i = 0; i < kChunks; ++i) {
    const unsigned candidate = (next_ + i) % kChunks;
    Chunk& entry = chunks_[candidate];
    if (entry.taken) continue;
    if (entry.sequence != 0 && !Client::Process().Completed(entry.stream.slot, entry.sequence))
      continue;
    entry.taken = true;
    next_ = (candidate + 1) % kChunks;
    *chunk = candidate;
    return true;
  }
  return false;
}

bool Staging::TryTake(unsigned* chunk) {
  const base::MutexLock lock(&mutex_);
  return TakeFree(chunk);
}

CUresult Staging::Take(unsigned* chunk) {
  base::MutexLock lock(&mutex_);
  while (!TakeFree(chunk)) {
    if (const CUresult result = Client::Process().Ready(); result != CUDA_SUCCESS) return result;
    const Chunk* oldest = nullptr;
    for (unsigned i = 0; i < kChunks && oldest == nullptr; ++i) {
      const Chunk& entry = chunks_[(next_ + i) % kChunks];
      if (!entry.taken) oldest = &entry;
    }
    if (oldest == nullptr) {  // all are in the hands of other threads
      given_.WaitUntil(&mutex_, std::chrono::steady_clock::now() + kLookAtSession);
      continue;
    }
    const Stream stream = oldest->stream;
    const uint64_t sequence = oldest->sequence;
    lock.Unlock();
    const CUresult result = WaitForSequenceOnly(stream, sequence);
    if (result != CUDA_SUCCESS) return result;
    lock.Lock();
  }
  return CUDA_SUCCESS;
}

void Staging::Give(unsigned chunk, const Stream& stream, uint64_t sequence) {
  {
    const base::MutexLock lock(&mutex_);
    chunks_[chunk].taken = false;
    chunks_[chunk].stream = stream;
    chunks_[chunk].sequence = sequence;
  }
  given_.NotifyOne();
}

}  // namespace shim
