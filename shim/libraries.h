// Libraries and kernels (cuLibrary*, cuKernel*): names that belong to no context. A library is the
// bytes of an image. The image becomes a module in each context where a program uses a kernel of
// it. Thread safety: all functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "shim/lock_order.h"
#include "shim/modules.h"
#include "shim/state.h"

namespace shim {

struct Library {
  std::vector<std::byte> image;
  JitOptions options;
  base::Mutex mutex ACQUIRED_BEFORE(lock_order::kSending);
  std::map<uint64_t, uint64_t> modules GUARDED_BY(mutex);                  // by context
  std::map<std::string, uint64_t, std::less<>> kernels GUARDED_BY(mutex);  // by name
};

struct Kernel {
  uint64_t library = 0;
  std::string name;
};

class Libraries {
 public:
  static Libraries& Process();

  // With a current context the image is loaded there at once, so that errors are reported now.
  CUresult Load(const void* image, JitOptions options, uint64_t* library);
  CUresult Unload(uint64_t library);

  // The library's module in the calling thread's current context.
  CUresult ModuleOf(uint64_t library, uint64_t* module);
  // 500 when the library has no such kernel (as far as it can be told without a context).
  CUresult FindKernel(uint64_t library, const char* name, uint64_t* kernel);
  CUresult FunctionOf(uint64_t kernel, uint64_t* function);

  HandleTable<Library, ipc::HandleKind::kLibrary> libraries;
  HandleTable<Kernel, ipc::HandleKind::kKernel> kernels;
};

}  // namespace shim
