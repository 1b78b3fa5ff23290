#include "daemon/worker/device_description.h"

#include <cstring>

namespace worker {

CUresult DescribeDevice(const Holdings& held, CUdevice seen, ipc::DeviceInfo* info) {
  if (seen < 0 || static_cast<size_t>(seen) >= held.seen_devices.count())
    return CUDA_ERROR_INVALID_DEVICE;
  const ipc::DriverTable& driver = *held.environment.driver;
  const CUdevice device = held.seen_devices.At(static_cast<size_t>(seen));
  driver.cuDeviceGetName(info->name, sizeof info->name, device);
  driver.cuDeviceGetPCIBusId(info->pci_bus_id, sizeof info->pci_bus_id, device);
  CUuuid uuid{};
  driver.cuDeviceGetUuid_v2(&uuid, device);
  std::memcpy(info->uuid, uuid.bytes, sizeof info->uuid);
  for (int i = 1; i < CU_DEVICE_ATTRIBUTE_MAX; ++i) {
    int value = 0;
    const CUdevice_attribute attribute = static_cast<CUdevice_attribute>(i);
    if (driver.cuDeviceGetAttribute(&value, attribute, device) == CUDA_SUCCESS)
      info->attributes[i] = value;
  }
  uint64_t free_bytes = 0;
  return held.arena.MemoryInfo(device, &free_bytes, &info->memory_bytes);
}

}  // namespace worker
