// What a driver of functions says of its devices: names, numbers, places.
#pragma once

#include <cstdio>

#include "daemon/common/driver.h"

inline void DescribeDevices(common::Driver* driver) {
  driver->cuDeviceGetName = [](char* name, int bytes, CUdevice device) {
    return std::snprintf(name, static_cast<size_t>(bytes), "device %d", device), CUDA_SUCCESS;
  };
  driver->cuDeviceGetUuid_v2 = [](CUuuid* uuid, CUdevice device) {
    return uuid->bytes[0] = static_cast<char>(device + 1), CUDA_SUCCESS;
  };
  driver->cuDeviceGetPCIBusId = [](char* id, int bytes, CUdevice device) {
    return std::snprintf(id, static_cast<size_t>(bytes), "0000:%02X:00.0", device), CUDA_SUCCESS;
  };
  driver->cuDeviceGetAttribute = [](int* value, CUdevice_attribute attribute, CUdevice) {
    return *value = attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT ? 16 : 8, CUDA_SUCCESS;
  };
}
