// Memory, use and processes of a device: of lanewayd's sessions, for a driver knows the worker
// alone.
#include <algorithm>

#include "nvml/state.h"

namespace nvml::ours {
namespace {

constexpr unsigned kNoInstance = ~0u;  // without MIG

uint64_t FreeOf(const Device& device) {
  return device.total_bytes - std::min(device.total_bytes, device.used_bytes);
}

void Fill(const Process& process, nvmlProcessInfo_v1_t* info) {
  info->pid = process.pid;
  info->usedGpuMemory = process.bytes;
}

template <class Info>
void Fill(const Process& process, Info* info) {
  *info = {};
  info->pid = process.pid;
  info->usedGpuMemory = process.bytes;
  info->gpuInstanceId = info->computeInstanceId = kNoInstance;
}

// As NVML does: `count` comes as the array's size and leaves as the number of processes.
template <class Info>
nvmlReturn_t List(const std::vector<Process>& processes, unsigned* count, Info* infos) {
  const unsigned room = *count;
  *count = static_cast<unsigned>(processes.size());
  if (room < processes.size()) return NVML_ERROR_INSUFFICIENT_SIZE;
  if (infos == nullptr) return processes.empty() ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
  for (size_t i = 0; i < processes.size(); ++i) Fill(processes[i], &infos[i]);
  return NVML_SUCCESS;
}

template <class Info>
nvmlReturn_t Compute(nvmlDevice_t handle, unsigned* count, Info* infos) {
  Device device;
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const nvmlReturn_t found = TheState().Find(handle, &device);
  return found == NVML_SUCCESS ? List(device.processes, count, infos) : found;
}

// Clients of Laneway draw nothing, and none of them goes through MPS.
nvmlReturn_t None(nvmlDevice_t handle, unsigned* count) {
  Device device;
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const nvmlReturn_t found = TheState().Find(handle, &device);
  if (found == NVML_SUCCESS) *count = 0;
  return found;
}

}  // namespace

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t handle, nvmlMemory_t* memory) {
  Device device;
  if (memory == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const nvmlReturn_t found = TheState().Find(handle, &device);
  if (found == NVML_SUCCESS) *memory = {device.total_bytes, FreeOf(device), device.used_bytes};
  return found;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t handle, nvmlMemory_v2_t* memory) {
  Device device;
  if (memory == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (memory->version != nvmlMemory_v2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  const nvmlReturn_t found = TheState().Find(handle, &device);
  if (found != NVML_SUCCESS) return found;
  memory->total = device.total_bytes;
  memory->reserved = 0;
  memory->free = FreeOf(device);
  memory->used = device.used_bytes;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t handle, nvmlUtilization_t* use) {
  Device device;
  if (use == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const nvmlReturn_t found = TheState().Find(handle, &device);
  if (found != NVML_SUCCESS) return found;
  if (!device.busy_percent.has_value()) return NVML_ERROR_NOT_SUPPORTED;
  *use = {.gpu = *device.busy_percent, .memory = 0};
  return NVML_SUCCESS;
}

// --- processes -----------------------------------------------------------------------------------

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t handle, unsigned* count,
                                                  nvmlProcessInfo_v1_t* infos) {
  return Compute(handle, count, infos);
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t handle, unsigned* count,
                                                     nvmlProcessInfo_v2_t* infos) {
  return Compute(handle, count, infos);
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t handle, unsigned* count,
                                                     nvmlProcessInfo_t* infos) {
  return Compute(handle, count, infos);
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t handle, unsigned* count,
                                                   nvmlProcessInfo_v1_t*) {
  return None(handle, count);
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t handle, unsigned* count,
                                                      nvmlProcessInfo_v2_t*) {
  return None(handle, count);
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t handle, unsigned* count,
                                                      nvmlProcessInfo_t*) {
  return None(handle, count);
}
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t handle, unsigned* count,
                                                     nvmlProcessInfo_v1_t*) {
  return None(handle, count);
}
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t handle, unsigned* count,
                                                        nvmlProcessInfo_v2_t*) {
  return None(handle, count);
}
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t handle, unsigned* count,
                                                        nvmlProcessInfo_t*) {
  return None(handle, count);
}

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t handle,
                                                   nvmlProcessDetailList_t* list) {
  constexpr unsigned kComputeMode = 0;  // 1: graphics, 2: MPS
  if (list == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (list->version != nvmlProcessDetailList_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  if (list->mode != kComputeMode) return None(handle, &list->numProcArrayEntries);
  return Compute(handle, &list->numProcArrayEntries, list->procArray);
}

// Samples by process are not kept: none is newer than any time that the caller names.
nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t handle, nvmlProcessUtilizationSample_t*,
                                             unsigned* count, unsigned long long) {
  const nvmlReturn_t found = None(handle, count);
  return found == NVML_SUCCESS ? NVML_ERROR_NOT_FOUND : found;
}

nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t handle,
                                                   nvmlProcessesUtilizationInfo_t* info) {
  if (info == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (info->version != nvmlProcessesUtilizationInfo_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  const nvmlReturn_t found = None(handle, &info->processSamplesCount);
  return found == NVML_SUCCESS ? NVML_ERROR_NOT_FOUND : found;
}

}  // namespace nvml::ours
