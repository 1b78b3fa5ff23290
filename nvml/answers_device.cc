// The answers that describe a device of the software GPU: its name, place and size, and what the
// device has not (displays, links, MIG).
#include <sched.h>

#include <cstdio>
#include <cstring>

#include "nvml/state.h"

namespace nvml::ours {
namespace {

// The bus of the software GPU is the host's memory: as fast as the fastest that programs know.
constexpr unsigned kLinkGeneration = 5, kLinkWidth = 16;

// Answers `value(device)` where the handle is one.
template <class T, class Value>
nvmlReturn_t Answer(nvmlDevice_t handle, T* out, Value value) {
  Device device;
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const nvmlReturn_t found = TheState().Find(handle, &device);
  if (found == NVML_SUCCESS) *out = value(device);
  return found;
}

template <class T>
nvmlReturn_t AnswerConstant(nvmlDevice_t handle, T* out, T value) {
  return Answer(handle, out, [value](const Device&) { return value; });
}

// Of the CUDA C++ programming guide: units for single precision of a multiprocessor.
unsigned CoresOf(const Device& device) {
  const bool has_64 = device.major < 8 || (device.major == 8 && device.minor == 0);
  return device.multiprocessors * (has_64 ? 64 : 128);
}

nvmlDeviceArchitecture_t ArchitectureOf(const Device& device) {
  switch (device.major) {
    case 7:
      return device.minor < 5 ? NVML_DEVICE_ARCH_VOLTA : NVML_DEVICE_ARCH_TURING;
    case 8:
      return device.minor < 9 ? NVML_DEVICE_ARCH_AMPERE : NVML_DEVICE_ARCH_ADA;
    case 9:
      return NVML_DEVICE_ARCH_HOPPER;
    case 10:
    case 12:
      return NVML_DEVICE_ARCH_BLACKWELL;
    default:
      return NVML_DEVICE_ARCH_UNKNOWN;
  }
}

// The fields that the structures have in common. False: the source has no such place.
template <class Info>
bool FillPlace(const Device& device, Info* info) {
  unsigned function = 0;
  if (std::sscanf(device.pci_bus_id.c_str(), "%x:%x:%x.%x", &info->domain, &info->bus,
                  &info->device, &function) != 4)
    return false;
  std::snprintf(info->busId, sizeof info->busId, NVML_DEVICE_PCI_BUS_ID_FMT, info->domain,
                info->bus, info->device);
  return true;
}

nvmlPciInfo_t PlaceOf(const Device& device) {
  nvmlPciInfo_t info = {};
  if (FillPlace(device, &info))
    std::snprintf(info.busIdLegacy, sizeof info.busIdLegacy, NVML_DEVICE_PCI_BUS_ID_LEGACY_FMT,
                  info.domain, info.bus, info.device);
  return info;
}

}  // namespace

// --- names ---------------------------------------------------------------------------------------

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t handle, char* name, unsigned length) {
  Device device;
  const nvmlReturn_t found = TheState().Find(handle, &device);
  return found == NVML_SUCCESS ? PutText(name, length, device.name) : found;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t handle, char* uuid, unsigned length) {
  Device device;
  const nvmlReturn_t found = TheState().Find(handle, &device);
  return found == NVML_SUCCESS ? PutText(uuid, length, device.uuid) : found;
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t handle, nvmlPciInfo_t* info) {
  return Answer(handle, info, PlaceOf);
}
nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t handle, nvmlPciInfo_t* info) {
  return Answer(handle, info, PlaceOf);
}
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t handle, nvmlPciInfo_t* info) {
  return Answer(handle, info, PlaceOf);
}

nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t handle, nvmlPciInfoExt_t* info) {
  if (info == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (info->version != nvmlPciInfoExt_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  return Answer(handle, info, [](const Device& device) {
    nvmlPciInfoExt_t filled = {};
    filled.version = nvmlPciInfoExt_v1;
    (void)FillPlace(device, &filled);
    return filled;
  });
}

// The number of the node below /dev on a GPU. A software GPU has no node.
nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t handle, unsigned* number) {
  return TheState().IndexOf(handle, number);
}

nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t handle, nvmlBrandType_t* brand) {
  return AnswerConstant(handle, brand, NVML_BRAND_UNKNOWN);
}

// --- size and speed ------------------------------------------------------------------------------

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t handle, int* major, int* minor) {
  if (minor == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return Answer(handle, major, [minor](const Device& device) {
    *minor = device.minor;
    return device.major;
  });
}

nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t handle, nvmlDeviceArchitecture_t* out) {
  return Answer(handle, out, ArchitectureOf);
}

nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t handle, unsigned* cores) {
  return Answer(handle, cores, CoresOf);
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t handle, unsigned* generation) {
  return AnswerConstant(handle, generation, kLinkGeneration);
}
nvmlReturn_t nvmlDeviceGetGpuMaxPcieLinkGeneration(nvmlDevice_t handle, unsigned* generation) {
  return AnswerConstant(handle, generation, kLinkGeneration);
}
nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t handle, unsigned* generation) {
  return AnswerConstant(handle, generation, kLinkGeneration);
}
nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t handle, unsigned* width) {
  return AnswerConstant(handle, width, kLinkWidth);
}
nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t handle, unsigned* width) {
  return AnswerConstant(handle, width, kLinkWidth);
}

// --- modes ---------------------------------------------------------------------------------------

nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t handle, nvmlComputeMode_t* mode) {
  return AnswerConstant(handle, mode, NVML_COMPUTEMODE_DEFAULT);
}

nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t handle, nvmlEnableState_t* mode) {
  return AnswerConstant(handle, mode, NVML_FEATURE_ENABLED);
}

nvmlReturn_t nvmlDeviceGetDisplayMode(nvmlDevice_t handle, nvmlEnableState_t* mode) {
  return AnswerConstant(handle, mode, NVML_FEATURE_DISABLED);
}

nvmlReturn_t nvmlDeviceGetDisplayActive(nvmlDevice_t handle, nvmlEnableState_t* active) {
  return AnswerConstant(handle, active, NVML_FEATURE_DISABLED);
}

nvmlReturn_t nvmlDeviceGetVirtualizationMode(nvmlDevice_t handle,
                                             nvmlGpuVirtualizationMode_t* mode) {
  return AnswerConstant(handle, mode, NVML_GPU_VIRTUALIZATION_MODE_NONE);
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t handle, unsigned* is_mig) {
  return AnswerConstant(handle, is_mig, 0u);
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t handle, unsigned* count) {
  return AnswerConstant(handle, count, 0u);
}

// --- neighbours ----------------------------------------------------------------------------------

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t handle, unsigned link,
                                      nvmlEnableState_t* active) {
  if (link >= NVML_NVLINK_MAX_LINKS) return NVML_ERROR_INVALID_ARGUMENT;
  return AnswerConstant(handle, active, NVML_FEATURE_DISABLED);
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t handle, nvmlGpuFabricInfo_t* info) {
  return Answer(handle, info, [](const Device&) {
    nvmlGpuFabricInfo_t none = {};
    none.state = NVML_GPU_FABRIC_STATE_NOT_SUPPORTED;
    return none;
  });
}

// Version 2 is the beginning of version 3.
nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t handle, nvmlGpuFabricInfoV_t* info) {
  if (info == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const unsigned version = info->version;
  if (version != nvmlGpuFabricInfo_v2 && version != nvmlGpuFabricInfo_v3)
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  Device device;
  const nvmlReturn_t found = TheState().Find(handle, &device);
  if (found != NVML_SUCCESS) return found;
  nvmlGpuFabricInfo_v3_t none = {};
  none.version = version;
  none.state = NVML_GPU_FABRIC_STATE_NOT_SUPPORTED;
  std::memcpy(info, &none,
              version == nvmlGpuFabricInfo_v2 ? sizeof(nvmlGpuFabricInfo_v2_t) : sizeof none);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t first, nvmlDevice_t second, int* same) {
  unsigned index = 0;
  const nvmlReturn_t found = TheState().IndexOf(second, &index);
  return found == NVML_SUCCESS ? AnswerConstant(first, same, first == second ? 1 : 0) : found;
}

nvmlReturn_t nvmlDeviceGetMultiGpuBoard(nvmlDevice_t handle, unsigned* multiple) {
  return AnswerConstant(handle, multiple, 0u);
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t first, nvmlDevice_t second,
                                                 nvmlGpuTopologyLevel_t* level) {
  unsigned index = 0;
  const nvmlReturn_t found = TheState().IndexOf(second, &index);
  return found == NVML_SUCCESS ? AnswerConstant(first, level, NVML_TOPOLOGY_NODE) : found;
}

// All software devices lie in the memory of one process.
nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t first, nvmlDevice_t second, nvmlGpuP2PCapsIndex_t,
                                    nvmlGpuP2PStatus_t* status) {
  unsigned index = 0;
  const nvmlReturn_t found = TheState().IndexOf(second, &index);
  return found == NVML_SUCCESS ? AnswerConstant(first, status, NVML_P2P_STATUS_OK) : found;
}

// --- processors ----------------------------------------------------------------------------------

// Every processor is as near as any other: those that the thread may run on.
nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t handle, unsigned words, unsigned long* set) {
  Device device;
  if (set == nullptr || words == 0) return NVML_ERROR_INVALID_ARGUMENT;
  if (const nvmlReturn_t found = TheState().Find(handle, &device); found != NVML_SUCCESS)
    return found;
  cpu_set_t processors;
  CPU_ZERO(&processors);
  if (sched_getaffinity(0, sizeof processors, &processors) != 0) return NVML_ERROR_UNKNOWN;
  constexpr unsigned kBits = 8 * sizeof *set;
  for (unsigned word = 0; word < words; ++word) {
    set[word] = 0;
    for (unsigned bit = 0; bit < kBits; ++bit)
      if (word * kBits + bit < CPU_SETSIZE && CPU_ISSET(word * kBits + bit, &processors))
        set[word] |= 1ul << bit;
  }
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceSetCpuAffinity(nvmlDevice_t handle) {
  Device device;
  return TheState().Find(handle, &device);
}

nvmlReturn_t nvmlDeviceClearCpuAffinity(nvmlDevice_t handle) {
  Device device;
  return TheState().Find(handle, &device);
}

// --- fields --------------------------------------------------------------------------------------

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t handle, int count, nvmlFieldValue_t* values) {
  Device device;
  if (count <= 0 || values == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const nvmlReturn_t found = TheState().Find(handle, &device);
  for (int i = 0; found == NVML_SUCCESS && i < count; ++i)
    values[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
  return found;
}

}  // namespace nvml::ours
