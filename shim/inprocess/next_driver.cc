#include "shim/inprocess/next_driver.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "ipc/environment.h"
#include "shim/stderr_once.h"

namespace shim::inprocess {
namespace {

void* library;

const ipc::DriverTable* Load() {
  static ipc::DriverTable table;
  static std::atomic<bool> said;
  const char* const path = std::getenv(ipc::kDriverVariable);
  // Not dlopen, which is interposed and would take the path for this library's own.
  if (path != nullptr) library = dlmopen(LM_ID_BASE, path, RTLD_NOW | RTLD_LOCAL);
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
