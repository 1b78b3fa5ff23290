#include "shim/plugin.h"

#include <dlfcn.h>

#include <string>

namespace shim {

void* PluginFunction(const char* library, const char* function) {
  Dl_info here;
  std::string path;
  if (dladdr(reinterpret_cast<const void*>(&PluginFunction), &here) != 0) {
    path = here.dli_fname;
    path.resize(path.rfind('/') + 1);
  }
  path += library;
  void* const plugin = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  return plugin == nullptr ? nullptr : dlsym(plugin, function);
}

}  // namespace shim
