#include "softgpu/nvjitlink/vendor.h"

#include <dlfcn.h>

#include <algorithm>

#include "base/vendor_library.h"

namespace softgpu::nvjitlink {
namespace {

constexpr char kName[] = "libnvJitLink.so.13";

struct Vendor {
  decltype(&__nvJitLinkCreate_13_0) create = nullptr;
  decltype(&__nvJitLinkDestroy_13_0) destroy = nullptr;
  decltype(&__nvJitLinkAddData_13_0) add = nullptr;
  decltype(&__nvJitLinkComplete_13_0) complete = nullptr;
  decltype(&__nvJitLinkGetLinkedPtxSize_13_0) ptx_size = nullptr;
  decltype(&__nvJitLinkGetLinkedPtx_13_0) ptx = nullptr;
  decltype(&__nvJitLinkGetErrorLogSize_13_0) log_size = nullptr;
  decltype(&__nvJitLinkGetErrorLog_13_0) log = nullptr;
  bool complete_table = false;
};

template <class Function>
bool Take(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

Vendor Load() {
  Vendor vendor;
  void* const library = base::OpenVendorLibrary(
      kName, {"CUDA_PATH", "CUDA_HOME"},
      {"/usr/local/cuda/lib64", "/opt/cuda/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64"});
  if (library == nullptr) return vendor;
  vendor.complete_table = Take(library, "nvJitLinkCreate", &vendor.create) &&
                          Take(library, "nvJitLinkDestroy", &vendor.destroy) &&
                          Take(library, "nvJitLinkAddData", &vendor.add) &&
                          Take(library, "nvJitLinkComplete", &vendor.complete) &&
                          Take(library, "nvJitLinkGetLinkedPtxSize", &vendor.ptx_size) &&
                          Take(library, "nvJitLinkGetLinkedPtx", &vendor.ptx) &&
                          Take(library, "nvJitLinkGetErrorLogSize", &vendor.log_size) &&
                          Take(library, "nvJitLinkGetErrorLog", &vendor.log);
  return vendor;
}

const Vendor& TheVendor() {
  static const Vendor* const vendor = new Vendor(Load());  // never destroyed: used to the end
  return *vendor;
}

// A text of which the vendor first tells the size, its zero included.
std::string TextOf(nvJitLinkHandle link, nvJitLinkResult (*size)(nvJitLinkHandle, size_t*),
                   nvJitLinkResult (*get)(nvJitLinkHandle, char*)) {
  size_t bytes = 0;
  if (size(link, &bytes) != NVJITLINK_SUCCESS) return "";
  std::string text(bytes, '\0');
  if (bytes == 0 || get(link, text.data()) != NVJITLINK_SUCCESS) return "";
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

}  // namespace

std::optional<std::string> CompileLto(const std::vector<LtoInput>& inputs,
                                      const std::vector<std::string>& options, std::string* error) {
  const Vendor& vendor = TheVendor();
  if (!vendor.complete_table) {
    *error =
        "LTO-IR is compiled by the vendor's libnvJitLink.so.13, which is neither in "
        "LD_LIBRARY_PATH nor below CUDA_PATH or /usr/local/cuda; install it or leave -lto out";
    return std::nullopt;
  }
  std::vector<const char*> words;
  for (const std::string& option : options) words.push_back(option.c_str());
  if (std::ranges::find(options, "-ptx") == options.end()) words.push_back("-ptx");
  nvJitLinkHandle link = nullptr;
  nvJitLinkResult result = vendor.create(&link, static_cast<uint32_t>(words.size()), words.data());
  for (const LtoInput& input : inputs) {
    if (result == NVJITLINK_SUCCESS)
      result =
          vendor.add(link, input.type, input.bytes.data(), input.bytes.size(), input.name.c_str());
  }
  if (result == NVJITLINK_SUCCESS) result = vendor.complete(link);
  std::optional<std::string> ptx;
  if (result == NVJITLINK_SUCCESS) ptx = TextOf(link, vendor.ptx_size, vendor.ptx);
  if (!ptx.has_value() && link != nullptr) *error = TextOf(link, vendor.log_size, vendor.log);
  if (link != nullptr) vendor.destroy(&link);
  return ptx;
}

}  // namespace softgpu::nvjitlink
