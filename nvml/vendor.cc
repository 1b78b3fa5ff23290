#include "nvml/vendor.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace nvml {
namespace {

constexpr char kName[] = "libnvidia-ml.so.1";

std::vector<std::string> Directories() {
  std::vector<std::string> directories;
  const char* const path = std::getenv("LD_LIBRARY_PATH");
  for (std::string_view rest = path == nullptr ? "" : path; !rest.empty();) {
    const size_t end = rest.find_first_of(":;");
    directories.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  for (const char* const usual :
       {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/nvidia/lib64",
        "/usr/lib/wsl/lib", "/run/opengl-driver/lib"}) {
    directories.emplace_back(usual);
  }
  return directories;
}

// Both of ours bear the vendor's name, and both may be in the library path.
bool IsOurs(void* library) { return dlsym(library, "laneway_nvml") != nullptr; }

// By its path: under its SONAME this library would be found.
void* Open() {
  for (const std::string& directory : Directories()) {
    const std::string path = (directory.empty() ? "." : directory) + "/" + kName;
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr && !IsOurs(library)) return library;
  }
  return nullptr;
}

Vendor Load() {
  Vendor vendor;
  void* const library = Open();
  if (library == nullptr) return vendor;
#define ALWAYS(name) vendor.name = reinterpret_cast<decltype(&::name)>(dlsym(library, #name));
#define OURS ALWAYS
#define ANSWERED ALWAYS
#define DEVICE ALWAYS
#define SETTING ALWAYS
#include "ipc/calls/nvml.inc"
#undef SETTING
#undef DEVICE
#undef ANSWERED
#undef OURS
#undef ALWAYS
  return vendor;
}

}  // namespace

const Vendor& TheVendor() {
  static const Vendor* const vendor = new Vendor(Load());  // never destroyed: used to the end
  return *vendor;
}

}  // namespace nvml
