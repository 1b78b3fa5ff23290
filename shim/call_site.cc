#include "shim/call_site.h"

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <algorithm>

#include "base/mutex.h"

namespace shim {
namespace {

#if defined(__SANITIZE_THREAD__)
// unw_backtrace leaves a cache to each thread, and takes a lock when the thread ends to free it:
// later than ThreadSanitizer knows of the thread. Steps need no such cache. One walk at a time: the
// library's own first use is not ordered with the uses beside it.
int Walk(void** frames, int capacity) {
  static base::Mutex mutex;
  const base::MutexLock lock(&mutex);
  unw_context_t context;
  unw_cursor_t cursor;
  if (unw_getcontext(&context) != 0 || unw_init_local(&cursor, &context) != 0) return 0;
  int count = 0;
  do {
    unw_word_t address = 0;
    if (unw_get_reg(&cursor, UNW_REG_IP, &address) != 0) break;
    frames[count++] = reinterpret_cast<void*>(address);
  } while (count < capacity && unw_step(&cursor) > 0);
  return count;
}
#else
int Walk(void** frames, int capacity) { return unw_backtrace(frames, capacity); }
#endif

}  // namespace

uint64_t CallSite() {
  // The first frames are ours, the same for every call.
  constexpr int kOwnFrames = 1;
  void* frames[kOwnFrames + kSiteFrames];
  const int count = std::max(0, Walk(frames, kOwnFrames + kSiteFrames));
  uint64_t hash = static_cast<uint64_t>(count);
  for (int i = kOwnFrames; i < count; ++i) {
    hash = (hash ^ reinterpret_cast<uint64_t>(frames[i])) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 29;
  }
  return hash | 1;
}

}  // namespace shim
