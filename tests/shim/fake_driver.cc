#include "tests/shim/fake_driver.h"

#include <cstdio>
#include <map>

#include "base/mutex.h"
#include "tests/shim/fake_graphs.h"
#include "tests/shim/fake_memory.h"
#include "tests/shim/fake_modules.h"
#include "tests/shim/fake_streams.h"

namespace shim_test {
namespace {

struct Faults {
  base::Mutex mutex;
  std::map<std::string, CUresult> results GUARDED_BY(mutex);
};

Faults& ProcessFaults() {
  static Faults* const faults = new Faults;
  return *faults;
}

CUresult DeviceName(char* name, int bytes, CUdevice device) {
  std::snprintf(name, static_cast<size_t>(bytes), "fake %d", device);
  return CUDA_SUCCESS;
}

CUresult DeviceAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      *value = 1024;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      *value = 65535;
      break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      *value = 32;
      break;
    default:
      *value = 1;
  }
  return CUDA_SUCCESS;
}

}  // namespace

ipc::DriverTable FakeDriver() {
  ipc::DriverTable table = ipc::NullDriver();
  table.cuDeviceGetName = &DeviceName;
  table.cuDeviceGetAttribute = &DeviceAttribute;
  AddStreams(&table);
  AddMemory(&table);
  AddModules(&table);
  AddGraphs(&table);
  return table;
}

void FailNext(const std::string& function, CUresult result) {
  Faults& faults = ProcessFaults();
  const base::MutexLock lock(&faults.mutex);
  faults.results[function] = result;
}

CUresult TakeFault(const std::string& function) {
  Faults& faults = ProcessFaults();
  const base::MutexLock lock(&faults.mutex);
  const std::map<std::string, CUresult>::iterator found = faults.results.find(function);
  if (found == faults.results.end()) return CUDA_SUCCESS;
  const CUresult result = found->second;
  faults.results.erase(found);
  return result;
}

}  // namespace shim_test
