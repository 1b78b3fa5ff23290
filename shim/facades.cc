#include "shim/facades.h"

#include <dlfcn.h>

#include <iterator>

namespace facades {
namespace {

constexpr Facade kAll[] = {
    {"libcuda.so.1", "libcuda.so.1", "libcuda.so"},
#ifndef LANEWAY_REPLACES_DRIVER_ALONE  // in-process mode: the program's other libraries are its own
    {"libcublasLt.so.13", "libcublasLt.so.13", nullptr},
    {"libcublas.so.13", "libcublas.so.13", nullptr},
    {"libcudart.so.13", "../runtime/libcudart.so.13", nullptr},
#endif
};

}  // namespace

std::span<const Facade> All() { return kAll; }

const std::string& OwnPath() {
  static const std::string* const path = [] {
    Dl_info here;
    const bool found = dladdr(reinterpret_cast<const void*>(&kAll), &here) != 0;
    return new std::string(found ? here.dli_fname : "");
  }();
  return *path;
}

const std::string& PathOf(size_t i) {
  static const std::string* const paths = [] {
    std::string* const made = new std::string[std::size(kAll)];
    const std::string directory = OwnPath().substr(0, OwnPath().rfind('/') + 1);
    for (size_t k = 0; k < std::size(kAll); ++k) made[k] = directory + kAll[k].file;
    return made;
  }();
  return paths[i];
}

}  // namespace facades
