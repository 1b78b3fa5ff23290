// The devices of the software GPU that this process has to itself, read through its own driver: the
// libcuda.so.1 that lies beside this library.
#include "nvml/source.h"

#include <cuda.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/uuid_text.h"

namespace {

// clang-format off
#define DRIVER_FUNCTIONS(FN) \
  FN(cuInit) FN(cuDeviceGetCount) FN(cuDeviceGetName) FN(cuDeviceGetUuid_v2) \
  FN(cuDeviceGetPCIBusId) FN(cuDeviceGetAttribute) FN(cuDeviceTotalMem_v2) \
  FN(cuDevicePrimaryCtxGetState) FN(cuDevicePrimaryCtxRetain) FN(cuDevicePrimaryCtxRelease_v2) \
  FN(cuCtxPushCurrent_v2) FN(cuCtxPopCurrent_v2) FN(cuMemGetInfo_v2)
// clang-format on

struct Driver {
#define MEMBER(name) decltype(&::name) name = nullptr;
  DRIVER_FUNCTIONS(MEMBER)
#undef MEMBER
};

bool Load(Driver* driver) {
  Dl_info here;
  if (dladdr(reinterpret_cast<const void*>(&Load), &here) == 0) return false;
  const std::string own = here.dli_fname;
  const std::string path = own.substr(0, own.rfind('/') + 1) + "libcuda.so.1";
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return false;
  bool complete = true;
#define FIND(name)                                                           \
  driver->name = reinterpret_cast<decltype(&::name)>(dlsym(library, #name)); \
  complete = complete && driver->name != nullptr;
  DRIVER_FUNCTIONS(FIND)
#undef FIND
  return complete && driver->cuInit(0) == CUDA_SUCCESS;
}

class SoftwareGpu : public nvml::Source {
 public:
  bool Read(nvml::Snapshot* snapshot) override {
    if (!loaded_ && !(loaded_ = Load(&driver_))) return false;
    int count = 0;
    if (driver_.cuDeviceGetCount(&count) != CUDA_SUCCESS) return false;
    *snapshot = {};
    for (int device = 0; device < count; ++device) snapshot->devices.push_back(Describe(device));
    return true;
  }

 private:
  nvml::Device Describe(CUdevice device) const {
    nvml::Device described;
    char name[128] = "", place[32] = "";
    CUuuid uuid = {};
    size_t total = 0;
    driver_.cuDeviceGetName(name, sizeof name, device);
    driver_.cuDeviceGetPCIBusId(place, sizeof place, device);
    driver_.cuDeviceGetUuid_v2(&uuid, device);
    driver_.cuDeviceTotalMem_v2(&total, device);
    described.name = name;
    described.pci_bus_id = place;
    described.uuid = base::UuidText(uuid.bytes);
    described.major = AttributeOf(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    described.minor = AttributeOf(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    described.multiprocessors =
        static_cast<unsigned>(AttributeOf(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
    described.total_bytes = total;
    if (const uint64_t used = UsedBytes(device, total); used != 0) {
      described.used_bytes = used;
      described.processes = {{static_cast<uint32_t>(getpid()), used}};
    }
    return described;
  }

  int AttributeOf(CUdevice device, CUdevice_attribute attribute) const {
    int value = 0;
    driver_.cuDeviceGetAttribute(&value, attribute, device);
    return value;
  }

  // Of this process, the only one on its devices. Asking must not make a context.
  uint64_t UsedBytes(CUdevice device, size_t total) const {
    unsigned flags = 0;
    int active = 0;
    CUcontext context = nullptr, previous = nullptr;
    if (driver_.cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || active == 0)
      return 0;
    if (driver_.cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS) return 0;
    size_t free = total, all = total;
    if (driver_.cuCtxPushCurrent_v2(context) == CUDA_SUCCESS) {
      driver_.cuMemGetInfo_v2(&free, &all);
      driver_.cuCtxPopCurrent_v2(&previous);
    }
    driver_.cuDevicePrimaryCtxRelease_v2(device);
    return all - std::min(free, all);
  }

  Driver driver_;
  bool loaded_ = false;
};

}  // namespace

nvml::Source& nvml::TheSource() {
  static SoftwareGpu* const source = new SoftwareGpu;
  return *source;
}
