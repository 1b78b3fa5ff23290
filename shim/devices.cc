#include "shim/devices.h"

#include <algorithm>
#include <cstdlib>

#include "shim/client.h"
#include "shim/send.h"
#include "shim/state.h"

namespace shim {
namespace {

// Attributes that read 0. They promise access to memory that is mapped in the program's process
// alone, handles that only the program's process could export, or calls that no session can make.
constexpr CUdevice_attribute kAbsent[] = {
    CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS,
    CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
    CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST,
    CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM,
    CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES,
    CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS,
    CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED,
};

}  // namespace

Devices& Devices::Process() {
  static Devices* const devices = new Devices;
  return *devices;
}

void Devices::Read() {
  if (read_) return;
  const int count = static_cast<int>(std::min<uint32_t>(
      Client::Process().connection().welcome.device_count, ipc::limits::kLegacySlots));
  entries_.resize(static_cast<size_t>(count));
  const char* text = std::getenv("CUDA_VISIBLE_DEVICES");
  if (text == nullptr) {
    for (int i = 0; i < count; ++i) visible_.push_back(i);
  }
  while (text != nullptr && *text != '\0') {
    char* end = nullptr;
    const long ordinal = std::strtol(text, &end, 10);
    if (end == text || ordinal < 0 || ordinal >= count) break;
    if (std::find(visible_.begin(), visible_.end(), ordinal) != visible_.end()) break;
    visible_.push_back(static_cast<int>(ordinal));
    text = *end == ',' ? end + 1 : nullptr;
  }
  read_ = true;
}

int Devices::Count() {
  const base::MutexLock lock(&mutex_);
  Read();
  return static_cast<int>(visible_.size());
}

CUresult Devices::Ordinal(CUdevice device, int* ordinal) {
  const base::MutexLock lock(&mutex_);
  Read();
  if (device < 0 || static_cast<size_t>(device) >= visible_.size())
    return CUDA_ERROR_INVALID_DEVICE;
  *ordinal = visible_[static_cast<size_t>(device)];
  return CUDA_SUCCESS;
}

CUdevice Devices::Visible(int ordinal) {
  const base::MutexLock lock(&mutex_);
  Read();
  return static_cast<CUdevice>(std::find(visible_.begin(), visible_.end(), ordinal) -
                               visible_.begin());
}

CUresult Devices::Info(int ordinal, const ipc::DeviceInfo** info) {
  const base::MutexLock lock(&mutex_);
  Read();
  Entry& entry = entries_[static_cast<size_t>(ordinal)];
  if (!entry.fetched) {
    const CUresult result = Call<ipc::Op::GetDeviceInfo>(
        State::WireOfDevice(ordinal), static_cast<CUdevice>(ordinal), &entry.info);
    if (result != CUDA_SUCCESS) return result;
    for (const CUdevice_attribute absent : kAbsent) entry.info.attributes[absent] = 0;
    entry.info.name[sizeof entry.info.name - 1] = '\0';
    entry.info.pci_bus_id[sizeof entry.info.pci_bus_id - 1] = '\0';
    entry.fetched = true;
  }
  *info = &entry.info;
  return CUDA_SUCCESS;
}

}  // namespace shim
