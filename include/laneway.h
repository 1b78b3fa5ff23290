/* For programs that tell Laneway where their iterations begin: once per training step, request, ...
 *
 *     for (;;) { laneway_iteration(); ... one iteration ... }
 *
 * Nothing to link (on glibc before 2.34: -ldl); without Laneway it does nothing. Laneway finds most
 * iterations by itself (docs/iterations.md); a program that calls this is believed instead. From
 * other languages: call the symbol laneway_iteration of the process when it has one; in Python
 *     getattr(ctypes.CDLL(None), "laneway_iteration", lambda: None)()
 * Thread safety: any thread. The iteration begins with the next work that the process submits. */
#pragma once

#include <dlfcn.h>
#include <stddef.h>

static inline void laneway_iteration(void) {
  static void (*mark)(void);
  static int looked;
  if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {
    void* const found = dlsym(NULL, "laneway_iteration"); /* NULL: RTLD_DEFAULT */
    __atomic_store_n((void**)(void*)&mark, found, __ATOMIC_RELAXED);
    __atomic_store_n(&looked, 1, __ATOMIC_RELEASE);
  }
  if (mark != NULL) mark();
}
