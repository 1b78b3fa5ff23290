#include "daemon/common/heap.h"

#include <malloc.h>

namespace common {
namespace {

// Small blocks come from each thread's own cache; two threads that miss theirs don't wait.
constexpr int kArenasMax = 2;

}  // namespace

void BoundHeap() { mallopt(M_ARENA_MAX, kArenasMax); }

void TrimHeap() { malloc_trim(0); }

}  // namespace common
