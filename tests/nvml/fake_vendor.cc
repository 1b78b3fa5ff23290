// A vendor's NVML of two GPUs, of which the second one comes first, for tests of what we pass on.
#include <cstring>

#include "nvml/api.h"

namespace {

int handles[2];
unsigned users = 0;

nvmlDevice_t HandleOf(unsigned index) { return reinterpret_cast<nvmlDevice_t>(&handles[index]); }

}  // namespace

extern "C" {

nvmlReturn_t nvmlInit_v2() { return ++users, NVML_SUCCESS; }
nvmlReturn_t nvmlShutdown() { return --users, NVML_SUCCESS; }

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device) {
  if (users != 1) return NVML_ERROR_UNINITIALIZED;
  if (std::strcmp(uuid, "GPU-second") == 0) return *device = HandleOf(0), NVML_SUCCESS;
  if (std::strcmp(uuid, "GPU-first") == 0) return *device = HandleOf(1), NVML_SUCCESS;
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t,
                                      unsigned* degrees) {
  return *degrees = device == HandleOf(0) ? 50 : 60, NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t, char* name, unsigned) {
  return std::memcpy(name, "vendor's", sizeof "vendor's"), NVML_SUCCESS;
}

// What a driver knows of memory is the worker's.
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t, nvmlMemory_t*) { return NVML_ERROR_UNKNOWN; }
nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_t, nvmlEnableState_t) { return NVML_SUCCESS; }

}  // extern "C"
