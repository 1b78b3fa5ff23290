#include "nvml/vendor.h"

#include <dlfcn.h>

#include "base/vendor_library.h"

namespace nvml {
namespace {

void* Open() {
  return base::OpenVendorLibrary(
      "libnvidia-ml.so.1", {},
      {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/nvidia/lib64",
       "/usr/lib/wsl/lib", "/run/opengl-driver/lib"});
}

Vendor Load() {
  Vendor vendor;
  void* const library = Open();
  if (library == nullptr) return vendor;
#define ROW(name) vendor.name = reinterpret_cast<decltype(&::name)>(dlsym(library, #name));
#include "ipc/calls/nvml.inc"
  return vendor;
}

}  // namespace

const Vendor& TheVendor() {
  static const Vendor* const vendor = new Vendor(Load());  // never destroyed: used to the end
  return *vendor;
}

}  // namespace nvml
