#include "shim/inprocess/next_driver.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "ipc/environment.h"
#include "shim/stderr_once.h"

// Of the interposed dlopen (shim/dlopen.cc): the libc's, which changes no name.
extern "C" void* (*laneway_real_dlopen())(const char*, int);

namespace shim::inprocess {
namespace {

void* library;

const ipc::DriverTable* Load() {
  static ipc::DriverTable table;
  static std::atomic<bool> said;
  const char* const path = std::getenv(ipc::kDriverVariable);
  if (path != nullptr) library = laneway_real_dlopen()(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const reason = path == nullptr ? "LANEWAY_DRIVER is not set" : dlerror();
    StderrOnce(said, {"the CUDA driver cannot be loaded (", reason == nullptr ? "" : reason,
                      "); start the program with `laneway run --mode=in-process -- PROGRAM`"});
    return &table;
  }
  void** entry = reinterpret_cast<void**>(&table);
#define CALL(fn, ...) *entry++ = dlsym(library, #fn);
#include "ipc/calls/driver.inc"
#undef CALL
  return &table;
}

}  // namespace

const ipc::DriverTable& Next() {
  static const ipc::DriverTable* const table = Load();
  return *table;
}

void* NextSymbol(const char* name) {
  (void)Next();
  return library == nullptr ? nullptr : dlsym(library, name);
}

}  // namespace shim::inprocess
