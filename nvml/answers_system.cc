// Begin and end, errors by name, versions, and devices by their numbers.
#include <cstdio>
#include <cstring>
#include <fstream>

#include "base/uuid_text.h"
#include "nvml/state.h"
#include "nvml/vendor.h"

namespace nvml::ours {
namespace {

// CUDA 13.0 came with the driver's branch 580. The software GPU has no version of its own there.
constexpr char kDriverVersion[] = "580.00.00";
constexpr char kNvmlVersion[] = "13.580.00.00";
constexpr int kCudaVersion = 13000;

struct PciPlace {
  unsigned domain = 0, bus = 0, device = 0;
  bool operator==(const PciPlace&) const = default;
};

bool Parse(const char* text, PciPlace* place) {
  unsigned function = 0;
  return std::sscanf(text, "%x:%x:%x.%x", &place->domain, &place->bus, &place->device, &function) ==
         4;
}

template <class Matches>
nvmlReturn_t Find(nvmlDevice_t* handle, Matches matches) {
  const std::vector<Device> devices = TheState().Devices();
  for (size_t i = 0; i < devices.size(); ++i)
    if (matches(devices[i])) return TheState().HandleOf(i, handle);
  return NVML_ERROR_NOT_FOUND;
}

}  // namespace

nvmlReturn_t nvmlInit() { return TheState().Init(); }
nvmlReturn_t nvmlInit_v2() { return TheState().Init(); }

// The flags say whether a machine without a GPU, or with one that can't be reached, is an error.
nvmlReturn_t nvmlInitWithFlags(unsigned) { return TheState().Init(); }

nvmlReturn_t nvmlShutdown() { return TheState().Shutdown(); }

const char* nvmlErrorString(nvmlReturn_t result) {
  switch (result) {
    case NVML_SUCCESS:
      return "Success";
    case NVML_ERROR_UNINITIALIZED:
      return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT:
      return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED:
      return "Not Supported";
    case NVML_ERROR_NO_PERMISSION:
      return "Insufficient Permissions";
    case NVML_ERROR_NOT_FOUND:
      return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
      return "Insufficient Size";
    case NVML_ERROR_DRIVER_NOT_LOADED:
      return "Driver Not Loaded";
    case NVML_ERROR_LIBRARY_NOT_FOUND:
      return "NVML Shared Library Not Found";
    case NVML_ERROR_FUNCTION_NOT_FOUND:
      return "Function Not Found";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
      return "Argument Version Mismatch";
    case NVML_ERROR_GPU_IS_LOST:
      return "GPU is lost";
    default:
      break;
  }
  const Vendor& vendor = TheVendor();
  return vendor.nvmlErrorString != nullptr ? vendor.nvmlErrorString(result) : "Unknown Error";
}

// --- versions ------------------------------------------------------------------------------------

nvmlReturn_t nvmlSystemGetDriverVersion(char* version, unsigned length) {
  return PutText(version, length, kDriverVersion);
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char* version, unsigned length) {
  return PutText(version, length, kNvmlVersion);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int* version) { return Put(version, kCudaVersion); }

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int* version) { return Put(version, kCudaVersion); }

nvmlReturn_t nvmlUnitGetCount(unsigned* count) { return Put(count, 0u); }

// The processes that we tell of are clients: a driver does not know them.
nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char* name, unsigned length) {
  if (name == nullptr || length == 0) return NVML_ERROR_INVALID_ARGUMENT;
  std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline");
  std::string command;
  if (!std::getline(file, command, '\0') || command.empty()) return NVML_ERROR_NOT_FOUND;
  return PutText(name, length, command.substr(0, length - 1));
}

// --- devices -------------------------------------------------------------------------------------

nvmlReturn_t nvmlDeviceGetCount(unsigned* count) { return Put(count, TheState().Count()); }
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* count) { return Put(count, TheState().Count()); }

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t* handle) {
  return TheState().HandleOf(index, handle);
}
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* handle) {
  return TheState().HandleOf(index, handle);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* handle) {
  if (uuid == nullptr || handle == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return Find(handle, [uuid](const Device& device) { return device.uuid == uuid; });
}

nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t* uuid, nvmlDevice_t* handle) {
  if (uuid == nullptr || handle == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (uuid->version != nvmlUUID_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  if (uuid->type == NVML_UUID_TYPE_ASCII) {
    const std::string text(uuid->value.str, strnlen(uuid->value.str, sizeof uuid->value.str));
    return ours::nvmlDeviceGetHandleByUUID(text.c_str(), handle);
  }
  if (uuid->type != NVML_UUID_TYPE_BINARY) return NVML_ERROR_INVALID_ARGUMENT;
  return ours::nvmlDeviceGetHandleByUUID(base::UuidText(uuid->value.bytes).c_str(), handle);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char* id, nvmlDevice_t* handle) {
  PciPlace wanted;
  if (id == nullptr || handle == nullptr || !Parse(id, &wanted)) return NVML_ERROR_INVALID_ARGUMENT;
  return Find(handle, [&wanted](const Device& device) {
    PciPlace place;
    return Parse(device.pci_bus_id.c_str(), &place) && place == wanted;
  });
}
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* id, nvmlDevice_t* handle) {
  return ours::nvmlDeviceGetHandleByPciBusId(id, handle);
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t handle, unsigned* index) {
  return TheState().IndexOf(handle, index);
}

}  // namespace nvml::ours
