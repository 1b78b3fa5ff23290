// Getting the facades into a process (shim/preload.cc says how and why).
#pragma once

namespace facades {

// Loads all facades, once in a process. Before any library is opened: its dependencies may be found
// elsewhere. Thread safety: any thread.
void LoadAll();

}  // namespace facades

// The libc's dlopen, which is interposed (shim/dlopen.cc): it changes no name and loads no facade.
extern "C" void* (*laneway_real_dlopen())(const char*, int);
