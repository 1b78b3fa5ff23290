#include "softgpu/nvrtc/vendor.h"

#include <dlfcn.h>

#include <cstdio>

#include "base/vendor_library.h"

namespace softgpu::nvrtc {
namespace {

constexpr char kName[] = "libnvrtc.so.13";

void* Open() {
  void* const library =
      base::OpenVendorLibrary(kName, {"CUDA_PATH", "CUDA_HOME"},
                              {"/usr/local/cuda/lib64", "/opt/cuda/lib64",
                               "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/local/lib"});
  return library != nullptr ? library : dlopen("libnvrtc.so", RTLD_NOW | RTLD_LOCAL);
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
