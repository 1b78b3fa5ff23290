#include "daemon/keeper/keeper.h"

#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace keeper {
namespace {

CUmemAllocationProp PropertiesOf(CUdevice device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  return properties;
}

}  // namespace

// Numbers never repeat among keepers of one boot (the process id is their upper half), so that an
// adopted extent keeps its name.
Keeper::Keeper(const common::Driver& driver, int64_t reserve_bytes)
    : driver_(driver),
      reserve_bytes_(reserve_bytes >= 0                               ? reserve_bytes
                     : driver.kind == ipc::control::DeviceKind::kCuda ? kCudaReserveBytes
                                                                      : 0),
      next_id_((static_cast<uint64_t>(getpid()) << 32) + 1) {}

absl::Status Keeper::Open() {
  CUresult result = driver_.cuInit(0);
  if (result != CUDA_SUCCESS) {
    return absl::FailedPreconditionError(absl::StrCat("the driver does not start: cuInit returns ",
                                                      common::ErrorName(driver_, result),
                                                      "; run laneway doctor"));
  }
  int count = 0;
  result = driver_.cuDeviceGetCount(&count);
  if (result != CUDA_SUCCESS || count == 0) {
    return absl::FailedPreconditionError("the driver has no device; use --device=soft");
  }
  for (int i = 0; i < std::min<int>(count, ipc::control::kDevicesMax); ++i) {
    const absl::Status opened = OpenDevice(i);
    if (!opened.ok()) return opened;
  }
  return absl::OkStatus();
}

absl::Status Keeper::OpenDevice(int ordinal) {
  Device device;
  size_t total = 0, granularity = 0;
  CUresult result = driver_.cuDeviceGet(&device.handle, ordinal);
  if (result == CUDA_SUCCESS) result = driver_.cuDeviceTotalMem_v2(&total, device.handle);
  if (result == CUDA_SUCCESS) {
    result = driver_.cuDeviceGetName(device.name, sizeof device.name, device.handle);
  }
  const CUmemAllocationProp properties = PropertiesOf(device.handle);
  if (result == CUDA_SUCCESS) {
    result = driver_.cuMemGetAllocationGranularity(&granularity, &properties,
                                                   CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  }
  if (result != CUDA_SUCCESS) {
    return absl::FailedPreconditionError(
        absl::StrCat("device ", ordinal, " can't be used: ", common::ErrorName(driver_, result)));
  }
  const uint64_t reserve = static_cast<uint64_t>(reserve_bytes_);
  device.capacity_bytes = total > reserve ? total - reserve : 0;
  device.granularity_bytes = granularity;
  device.name[sizeof device.name - 1] = '\0';
  devices_.push_back(device);
  return absl::OkStatus();
}

CUresult Keeper::CheckRoom(uint32_t device, uint64_t bytes) const {
  if (device >= devices_.size()) return CUDA_ERROR_INVALID_DEVICE;
  const Device& where = devices_[device];
  if (bytes == 0 || bytes % where.granularity_bytes != 0) return CUDA_ERROR_INVALID_VALUE;
  // Our own count decides: a driver may not count what this process imported from an earlier
  // keeper.
  const uint64_t left = where.capacity_bytes - std::min(where.used_bytes, where.capacity_bytes);
  return bytes <= left ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult Keeper::Create(uint32_t worker, const ipc::control::CreateExtent& request, uint64_t* id,
                        ipc::UniqueFd* fd) {
  CUresult result = CheckRoom(request.device, request.bytes);
  if (result != CUDA_SUCCESS) return result;
  Device& device = devices_[request.device];
  const CUmemAllocationProp properties = PropertiesOf(device.handle);
  Extent extent{0, request.bytes, request.session_id, worker, request.device};
  result = driver_.cuMemCreate(&extent.handle, request.bytes, &properties, 0);
  if (result != CUDA_SUCCESS) return result;
  int exported = -1;
  result = driver_.cuMemExportToShareableHandle(&exported, extent.handle,
                                                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  if (result != CUDA_SUCCESS) {
    driver_.cuMemRelease(extent.handle);
    return result;
  }
  *fd = ipc::UniqueFd(exported);
  *id = next_id_++;
  extents_.emplace(*id, extent);
  device.used_bytes += extent.bytes;
  return CUDA_SUCCESS;
}

CUresult Keeper::Adopt(uint32_t worker, const ipc::control::AdoptExtent& request,
                       const ipc::UniqueFd& fd) {
  if (request.device >= devices_.size()) return CUDA_ERROR_INVALID_DEVICE;
  if (request.bytes == 0 || !fd.valid() || extents_.count(request.id) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Extent extent{0, request.bytes, request.session_id, worker, request.device};
  const CUresult result = driver_.cuMemImportFromShareableHandle(
      &extent.handle, reinterpret_cast<void*>(static_cast<intptr_t>(fd.get())),
      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  if (result != CUDA_SUCCESS) return result;
  extents_.emplace(request.id, extent);
  devices_[request.device].used_bytes += extent.bytes;
  return CUDA_SUCCESS;
}

void Keeper::Release(Extents::iterator extent) {
  Device& device = devices_[extent->second.device];
  assert(device.used_bytes >= extent->second.bytes);
  device.used_bytes -= extent->second.bytes;
  driver_.cuMemRelease(extent->second.handle);
  extents_.erase(extent);
}

void Keeper::Free(uint32_t worker, uint64_t id) {
  const Extents::iterator found = extents_.find(id);
  if (found != extents_.end() && found->second.worker == worker) Release(found);
}

uint64_t Keeper::ReleaseWorker(uint32_t worker) {
  uint64_t bytes = 0;
  for (Extents::iterator extent = extents_.begin(); extent != extents_.end();) {
    const Extents::iterator current = extent++;
    if (current->second.worker != worker) continue;
    bytes += current->second.bytes;
    Release(current);
  }
  return bytes;
}

ipc::control::MemoryReply Keeper::Memory(uint32_t device) const {
  ipc::control::MemoryReply reply;
  if (device >= devices_.size()) return reply;
  reply.total_bytes = devices_[device].capacity_bytes;
  reply.free_bytes = reply.total_bytes - std::min(reply.total_bytes, devices_[device].used_bytes);
  return reply;
}

ipc::control::KeeperReady Keeper::Describe() const {
  ipc::control::KeeperReady ready;
  ready.pid = getpid();
  ready.kind = driver_.kind;
  ready.device_count = static_cast<uint32_t>(devices_.size());
  for (size_t i = 0; i < devices_.size(); ++i) {
    ready.devices[i].capacity_bytes = devices_[i].capacity_bytes;
    ready.devices[i].used_bytes = devices_[i].used_bytes;
    std::memcpy(ready.devices[i].name, devices_[i].name, sizeof devices_[i].name);
  }
  return ready;
}

std::vector<ipc::control::UsageList> Keeper::Usages() const {
  using Key = std::pair<std::pair<uint64_t, uint32_t>, uint32_t>;  // session, worker, device
  std::map<Key, uint64_t> sums;
  for (const Extents::value_type& entry : extents_) {
    const Extent& extent = entry.second;
    sums[{{extent.session_id, extent.worker}, extent.device}] += extent.bytes;
  }
  std::vector<ipc::control::UsageList> lists;
  for (const std::pair<const Key, uint64_t>& sum : sums) {
    if (lists.empty() || lists.back().count == ipc::control::kUsagesMax) lists.emplace_back();
    ipc::control::UsageList& list = lists.back();
    list.usages[list.count++] = {sum.first.first.first, sum.second, sum.first.first.second,
                                 sum.first.second};
  }
  return lists;
}

}  // namespace keeper
