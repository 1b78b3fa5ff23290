#include "softgpu/nvrtc/vendor.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace softgpu::nvrtc {
namespace {

constexpr char kName[] = "libnvrtc.so.13";

std::vector<std::string> Directories() {
  std::vector<std::string> directories;
  const char* const path = std::getenv("LD_LIBRARY_PATH");
  for (std::string_view rest = path == nullptr ? "" : path; !rest.empty();) {
    const size_t end = rest.find_first_of(":;");
    directories.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  for (const char* const variable : {"CUDA_PATH", "CUDA_HOME"}) {
    const char* const root = std::getenv(variable);
    if (root == nullptr) continue;
    directories.push_back(std::string(root) + "/lib64");
    directories.push_back(std::string(root) + "/lib");
  }
  for (const char* const usual : {"/usr/local/cuda/lib64", "/opt/cuda/lib64",
                                  "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/local/lib"}) {
    directories.emplace_back(usual);
  }
  return directories;
}

bool IsThisLibrary(const std::string& path) {
  Dl_info here;
  struct stat own, other;
  return dladdr(reinterpret_cast<const void*>(&kName), &here) != 0 &&
         stat(here.dli_fname, &own) == 0 && stat(path.c_str(), &other) == 0 &&
         own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

// By its path: under its SONAME this library would be found.
void* Open() {
  for (const std::string& directory : Directories()) {
    const std::string path = (directory.empty() ? "." : directory) + "/" + kName;
    if (IsThisLibrary(path)) continue;
    if (void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return dlopen("libnvrtc.so", RTLD_NOW | RTLD_LOCAL);
}

Vendor Load() {
  Vendor vendor;
  void* const library = Open();
  if (library == nullptr) {
    std::fprintf(stderr,
                 "softgpu: there is no %s in LD_LIBRARY_PATH, CUDA_PATH or /usr/local/cuda; "
                 "install NVRTC of CUDA 13 or set CUDA_PATH\n",
                 kName);
    return vendor;
  }
#define PASSED(name) vendor.name = reinterpret_cast<decltype(&::name)>(dlsym(library, #name));
#define OURS(name) PASSED(name)
#include "ipc/calls/nvrtc.inc"
#undef OURS
#undef PASSED
  return vendor;
}

}  // namespace

const Vendor& TheVendor() {
  static const Vendor* const vendor = new Vendor(Load());  // never destroyed: used to the end
  return *vendor;
}

}  // namespace softgpu::nvrtc
