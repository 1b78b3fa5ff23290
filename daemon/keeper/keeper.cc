#include "daemon/keeper/keeper.h"

#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace keeper {

using ipc::control::OwnerKind;

namespace {

CUmemAllocationProp PropertiesOf(CUdevice device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  return properties;
}

// The keeper describes its devices for lanewayd and for the clients' NVML, which open no driver of
// their own.
CUresult DescribeDevice(const common::Driver& driver, CUdevice device,
                        ipc::control::DeviceRecord* record) {
  CUuuid uuid = {};
  CUresult result = driver.cuDeviceGetName(record->name, sizeof record->name, device);
  if (result == CUDA_SUCCESS) result = driver.cuDeviceGetUuid_v2(&uuid, device);
  if (result == CUDA_SUCCESS)
    result = driver.cuDeviceGetPCIBusId(record->pci_bus_id, sizeof record->pci_bus_id, device);
  const std::pair<CUdevice_attribute, uint32_t*> attributes[] = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &record->major},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &record->minor},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &record->multiprocessors}};
  for (const std::pair<CUdevice_attribute, uint32_t*>& attribute : attributes) {
    int value = 0;
    if (result == CUDA_SUCCESS)
      result = driver.cuDeviceGetAttribute(&value, attribute.first, device);
    *attribute.second = static_cast<uint32_t>(std::max(value, 0));
  }
  record->name[sizeof record->name - 1] = '\0';
  record->pci_bus_id[sizeof record->pci_bus_id - 1] = '\0';
  static_assert(sizeof uuid.bytes == sizeof record->uuid);
  std::memcpy(record->uuid, uuid.bytes, sizeof uuid.bytes);
  return result;
}

}  // namespace

// Numbers never repeat among keepers of one boot (the process id is their upper half), so that an
// adopted extent keeps its name.
Keeper::Keeper(const common::Driver& driver, int64_t reserve_bytes, Scrub scrub)
    : driver_(driver),
      reserve_bytes_(reserve_bytes >= 0                               ? reserve_bytes
                     : driver.kind == ipc::control::DeviceKind::kCuda ? kCudaReserveBytes
                                                                      : 0),
      scrub_(scrub),
      next_id_((static_cast<uint64_t>(getpid()) << 32) + 1) {}

absl::Status Keeper::Open() {
  if (absl::Status started = common::StartDriver(driver_); !started.ok()) return started;
  int count = 0;
  const CUresult result = driver_.cuDeviceGetCount(&count);
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
  if (result == CUDA_SUCCESS) result = DescribeDevice(driver_, device.handle, &device.record);
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
  device.record.capacity_bytes = total > reserve ? total - reserve : 0;
  device.granularity_bytes = granularity;
  devices_.push_back(device);
  return absl::OkStatus();
}

CUresult Keeper::CheckRoom(uint32_t device, uint64_t bytes) const {
  if (device >= devices_.size()) return CUDA_ERROR_INVALID_DEVICE;
  const Device& where = devices_[device];
  if (bytes == 0 || bytes % where.granularity_bytes != 0) return CUDA_ERROR_INVALID_VALUE;
  // Our own count decides: a driver may not count what this process imported from an earlier
  // keeper.
  const uint64_t left =
      where.record.capacity_bytes - std::min(where.record.used_bytes, where.record.capacity_bytes);
  return bytes <= left ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult Keeper::Export(CUmemGenericAllocationHandle handle, ipc::UniqueFd* fd) const {
  int exported = -1;
  const CUresult result = driver_.cuMemExportToShareableHandle(
      &exported, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  if (result == CUDA_SUCCESS) *fd = ipc::UniqueFd(exported);
  return result;
}

// The software GPU's memory is new each time, and zero.
bool Keeper::MustClear(const ExtentRecord& extent) const {
  if (scrub_ == Scrub::kAlways) return true;
  if (driver_.kind == ipc::control::DeviceKind::kSoft) return false;
  const std::set<uint32_t>& writers = devices_[extent.device].writers;
  return writers.size() > writers.count(extent.uid);
}

ipc::control::ExtentReply Keeper::Create(uint32_t worker, const ExtentRecord& wanted,
                                         ipc::UniqueFd* fd) {
  ipc::control::ExtentReply reply;
  reply.result = CheckRoom(wanted.device, wanted.bytes);
  if (reply.result != CUDA_SUCCESS) return reply;
  Device& device = devices_[wanted.device];
  const CUmemAllocationProp properties = PropertiesOf(device.handle);
  Extent extent{0, wanted, {worker}};
  reply.result = driver_.cuMemCreate(&extent.handle, wanted.bytes, &properties, 0);
  if (reply.result != CUDA_SUCCESS) return reply;
  reply.result = Export(extent.handle, fd);
  if (reply.result != CUDA_SUCCESS) {
    driver_.cuMemRelease(extent.handle);
    return reply;
  }
  // Never a number of an earlier extent: a late message about that one finds nothing.
  reply.id = extent.record.id = next_id_++;
  reply.clear = MustClear(extent.record);
  device.record.used_bytes += wanted.bytes;
  extents_.emplace(reply.id, std::move(extent));
  return reply;
}

// An extent goes from a lane to a session and never back. So when two workers hand it over and name
// different owners, the worker that names a session knows the later state.
void Keeper::TakeOwner(const ExtentRecord& told, ExtentRecord* known) {
  if (told.owner.kind != OwnerKind::kSession || known->owner.kind != OwnerKind::kLane) return;
  known->owner = told.owner;
  known->address = told.address;
  known->range = told.range;
}

// A worker hands a lane over because a session of it was inside when this keeper came. Meanwhile
// the session may have left, and a session of another worker may have entered and made what it
// lacked.
bool Keeper::IsLate(uint32_t worker, const Owner& owner) const {
  if (owner.kind != OwnerKind::kLane) return false;
  const std::map<uint64_t, uint32_t>::const_iterator claim = claims_.find(owner.id);
  return claim != claims_.end() && claim->second != worker;
}

CUresult Keeper::Adopt(uint32_t worker, const ExtentRecord& extent, const ipc::UniqueFd& fd) {
  if (extent.device >= devices_.size()) return CUDA_ERROR_INVALID_DEVICE;
  if (extent.bytes == 0 || !fd.valid()) return CUDA_ERROR_INVALID_VALUE;
  if (const Extents::iterator known = extents_.find(extent.id); known != extents_.end()) {
    if (known->second.record.bytes != extent.bytes ||
        known->second.record.device != extent.device) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    known->second.workers.insert(worker);
    TakeOwner(extent, &known->second.record);
    return CUDA_SUCCESS;
  }
  if (IsLate(worker, extent.owner)) return CUDA_ERROR_ILLEGAL_STATE;
  Extent adopted{0, extent, {worker}};
  const CUresult result = driver_.cuMemImportFromShareableHandle(
      &adopted.handle, reinterpret_cast<void*>(static_cast<intptr_t>(fd.get())),
      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  if (result != CUDA_SUCCESS) return result;
  // A predecessor with our process id would number as we do.
  if (extent.id >> 32 == next_id_ >> 32) next_id_ = std::max(next_id_, extent.id + 1);
  extents_.emplace(extent.id, std::move(adopted));
  devices_[extent.device].record.used_bytes += extent.bytes;
  return CUDA_SUCCESS;
}

ipc::control::ExtentReply Keeper::Import(uint32_t worker, uint64_t id, ipc::UniqueFd* fd) {
  ipc::control::ExtentReply reply;
  reply.id = id;
  const Extents::iterator found = extents_.find(id);
  if (found == extents_.end() || found->second.given_up) {
    reply.result = CUDA_ERROR_INVALID_VALUE;
    return reply;
  }
  reply.result = Export(found->second.handle, fd);
  if (reply.result == CUDA_SUCCESS) found->second.workers.insert(worker);
  return reply;
}

// A worker that is no longer among the extent's workers was released, and its message came late.
void Keeper::Leave(uint32_t worker, uint64_t id, bool give_up) {
  const Extents::iterator found = extents_.find(id);
  if (found == extents_.end() || found->second.workers.erase(worker) == 0) return;
  if (give_up) found->second.given_up = true;
  ReleaseIfUnused(found);
}

void Keeper::ChangeOwner(uint32_t worker, const ipc::control::ChangeOwner& change) {
  const Extents::iterator found = extents_.find(change.id);
  if (found == extents_.end() || found->second.workers.count(worker) == 0) return;
  found->second.record.owner = change.owner;
  found->second.record.address = change.address;
  found->second.record.range = change.range;
}

// By address, because a lane's extents have no gaps: a worker appends them in this order.
std::vector<ipc::control::ExtentList> Keeper::List(const Owner& owner) const {
  std::vector<const ExtentRecord*> records;
  for (const Extents::value_type& entry : extents_) {
    if (entry.second.record.owner == owner && !entry.second.given_up) {
      records.push_back(&entry.second.record);
    }
  }
  std::sort(records.begin(), records.end(),
            [](const ExtentRecord* a, const ExtentRecord* b) { return a->address < b->address; });
  std::vector<ipc::control::ExtentList> lists;
  for (const ExtentRecord* const record : records) {
    if (lists.empty() || lists.back().count == ipc::control::kExtentsMax) lists.emplace_back();
    lists.back().extents[lists.back().count++] = *record;
  }
  return lists;
}

// The driver may give the same memory to the next extent: the device remembers which user has
// written there.
void Keeper::ReleaseIfUnused(Extents::iterator extent) {
  if (!extent->second.given_up || !extent->second.workers.empty()) return;
  const ExtentRecord& record = extent->second.record;
  Device& device = devices_[record.device];
  assert(device.record.used_bytes >= record.bytes);
  device.record.used_bytes -= record.bytes;
  device.writers.insert(record.uid);
  driver_.cuMemRelease(extent->second.handle);
  extents_.erase(extent);
}

void Keeper::CountOutside(const ipc::control::CountOutside& count) {
  if (count.device >= devices_.size()) return;
  Device& device = devices_[count.device];
  uint64_t& counted = outside_[{count.owner, count.device}];
  const uint64_t bytes = std::min(count.bytes, device.record.capacity_bytes);
  device.record.used_bytes += bytes - counted;
  counted = bytes;
}

uint64_t Keeper::ReleaseOwner(const Owner& owner) {
  if (owner.kind == OwnerKind::kLane) claims_.erase(owner.id);
  uint64_t bytes = 0;
  for (uint32_t device = 0; device < devices_.size(); ++device) {
    const auto counted = outside_.find({owner, device});
    if (counted == outside_.end()) continue;
    devices_[device].record.used_bytes -= counted->second;
    bytes += counted->second;
    outside_.erase(counted);
  }
  for (Extents::iterator next = extents_.begin(); next != extents_.end();) {
    const Extents::iterator extent = next++;
    if (extent->second.record.owner != owner || extent->second.given_up) continue;
    bytes += extent->second.record.bytes;
    extent->second.given_up = true;
    ReleaseIfUnused(extent);
  }
  return bytes;
}

uint64_t Keeper::ReleaseWorker(uint32_t worker) {
  uint64_t bytes = 0;
  for (Extents::iterator next = extents_.begin(); next != extents_.end();) {
    const Extents::iterator extent = next++;
    if (extent->second.workers.erase(worker) == 0) continue;
    if (extent->second.given_up && extent->second.workers.empty()) {
      bytes += extent->second.record.bytes;
    }
    ReleaseIfUnused(extent);
  }
  return bytes;
}

ipc::control::MemoryReply Keeper::Memory(uint32_t device) const {
  ipc::control::MemoryReply reply;
  if (device >= devices_.size()) return reply;
  reply.total_bytes = devices_[device].record.capacity_bytes;
  reply.free_bytes =
      reply.total_bytes - std::min(reply.total_bytes, devices_[device].record.used_bytes);
  return reply;
}

ipc::control::KeeperReady Keeper::Describe() const {
  ipc::control::KeeperReady ready;
  ready.pid = getpid();
  ready.kind = driver_.kind;
  ready.device_count = static_cast<uint32_t>(devices_.size());
  for (size_t i = 0; i < devices_.size(); ++i) ready.devices[i] = devices_[i].record;
  return ready;
}

std::vector<ipc::control::UsageList> Keeper::Usages() const {
  using Key = std::tuple<Owner, uint32_t, uint32_t>;  // worker, device
  std::map<Key, uint64_t> sums;
  for (const Extents::value_type& entry : extents_) {
    const Extent& extent = entry.second;
    uint64_t bytes = extent.record.bytes;
    if (extent.workers.empty()) sums[{extent.record.owner, 0, extent.record.device}] += bytes;
    for (const uint32_t worker : extent.workers) {
      sums[{extent.record.owner, worker, extent.record.device}] += std::exchange(bytes, 0);
    }
  }
  for (const auto& [whose, bytes] : outside_) sums[{whose.first, 0, whose.second}] += bytes;
  std::vector<ipc::control::UsageList> lists;
  for (const std::pair<const Key, uint64_t>& sum : sums) {
    if (lists.empty() || lists.back().count == ipc::control::kUsagesMax) lists.emplace_back();
    ipc::control::UsageList& list = lists.back();
    list.usages[list.count++] = {std::get<0>(sum.first), sum.second, std::get<1>(sum.first),
                                 std::get<2>(sum.first)};
  }
  return lists;
}

}  // namespace keeper
