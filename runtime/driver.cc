#include "runtime/driver.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>

namespace runtime {
namespace {

// A row must name the symbol itself: cuda.h turns some names into versioned ones, and then the text
// and the type would be those of different functions.
#define RUNTIME_TEXT(fn) #fn
#define DRIVER(fn)                                                            \
  static_assert(std::string_view(RUNTIME_TEXT(fn)).size() == sizeof(#fn) - 1, \
                #fn ": cuda.h renames this; write the versioned name");
#include "runtime/driver.inc"
#undef DRIVER
#undef RUNTIME_TEXT

DriverTable table;
std::atomic<bool> exiting = false;

// A machine without a driver is ordinary; a driver that does not load is worth a sentence.
void SayWhy(const char* error) {
  if (error == nullptr || std::strstr(error, "No such file") != nullptr) return;
  std::fprintf(stderr, "cudart: the CUDA driver library can't be loaded: %s\n", error);
}

bool OpenDriver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    SayWhy(dlerror());
    return false;
  }
#define DRIVER(fn) table.fn.Resolve(dlsym(library, #fn));
#include "runtime/driver.inc"
#undef DRIVER
  // Handlers run in reverse order of registration: this one runs before those of programs that
  // registered their code earlier, which is when they are loaded.
  std::atexit([] { exiting.store(true, std::memory_order_relaxed); });
  return true;
}

}  // namespace

bool FindDriver() {
  static const bool found = OpenDriver();
  return found;
}

cudaError_t LoadDriver() {
  static const cudaError_t result = FindDriver() ? Driver().cuInit(0) : cudaErrorInsufficientDriver;
  return result;
}

const DriverTable& Driver() { return table; }

bool Exiting() { return exiting.load(std::memory_order_relaxed); }

}  // namespace runtime
