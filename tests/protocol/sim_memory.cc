#include "tests/protocol/sim_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <set>

#include "tests/daemon/described_devices.h"

namespace protocol {
namespace {

namespace wire = ipc::control;

SimDevice* current = nullptr;  // the driver's functions know no other

constexpr uint64_t kNumbersOfAKeeper = 1 << 20;

}  // namespace

// --- the device ----------------------------------------------------------------------------------

SimDevice::SimDevice(uint64_t capacity_bytes) : capacity_bytes_(capacity_bytes) {
  current = this;
  worker_driver_.cuMemMap = &SimDevice::Map;
  worker_driver_.cuMemUnmap = &SimDevice::UnmapOne;
  worker_driver_.cuMemSetAccess = [](CUdeviceptr, size_t, const CUmemAccessDesc*, size_t) {
    return CUDA_SUCCESS;
  };
  keeper_driver_.cuInit = [](unsigned) { return CUDA_SUCCESS; };
  keeper_driver_.cuDeviceGetCount = [](int* count) {
    *count = 1;
    return CUDA_SUCCESS;
  };
  keeper_driver_.cuDeviceGet = [](CUdevice* device, int) {
    *device = 0;
    return CUDA_SUCCESS;
  };
  DescribeDevices(&keeper_driver_);
  keeper_driver_.cuDeviceTotalMem_v2 = &SimDevice::TotalMemory;
  keeper_driver_.cuMemGetAllocationGranularity = [](size_t* bytes, const CUmemAllocationProp*,
                                                    CUmemAllocationGranularity_flags) {
    *bytes = kUnit;
    return CUDA_SUCCESS;
  };
  keeper_driver_.cuMemCreate = &SimDevice::Create;
  keeper_driver_.cuMemRelease = [](CUmemGenericAllocationHandle) { return CUDA_SUCCESS; };
  keeper_driver_.cuMemExportToShareableHandle = [](void*, CUmemGenericAllocationHandle,
                                                   CUmemAllocationHandleType,
                                                   unsigned long long) { return CUDA_SUCCESS; };
  keeper_driver_.cuMemImportFromShareableHandle = [](CUmemGenericAllocationHandle* handle, void*,
                                                     CUmemAllocationHandleType) {
    *handle = current->next_handle_++;
    return CUDA_SUCCESS;
  };
}

SimDevice::~SimDevice() { current = nullptr; }

CUresult SimDevice::TotalMemory(size_t* bytes, CUdevice) {
  *bytes = current->capacity_bytes_;
  return CUDA_SUCCESS;
}

CUresult SimDevice::Create(CUmemGenericAllocationHandle* handle, size_t, const CUmemAllocationProp*,
                           unsigned long long) {
  *handle = current->next_handle_++;
  return CUDA_SUCCESS;
}

CUresult SimDevice::Map(CUdeviceptr address, size_t bytes, size_t, CUmemGenericAllocationHandle id,
                        unsigned long long) {
  std::map<CUdeviceptr, Mapping>& mappings = current->mappings_;
  const std::map<CUdeviceptr, Mapping>::iterator next = mappings.lower_bound(address);
  const bool hits_next = next != mappings.end() && next->first < address + bytes;
  const bool hits_last =
      next != mappings.begin() && std::prev(next)->first + std::prev(next)->second.bytes > address;
  assert(!hits_next && !hits_last);
  mappings.emplace_hint(next, address, Mapping{id, bytes});
  return CUDA_SUCCESS;
}

CUresult SimDevice::UnmapOne(CUdeviceptr address, size_t bytes) {
  const std::map<CUdeviceptr, Mapping>::iterator found = current->mappings_.find(address);
  assert(found != current->mappings_.end() && found->second.bytes == bytes);
  current->mappings_.erase(found);
  return CUDA_SUCCESS;
}

void SimDevice::Unmap(CUdeviceptr from, CUdeviceptr to) {
  mappings_.erase(mappings_.lower_bound(from), mappings_.lower_bound(to));
}

// --- the keeper ----------------------------------------------------------------------------------

SimKeeper::SimKeeper(Scene* scene, const SimDevice& device) : scene_(scene), device_(device) {
  Restart();
}

void SimKeeper::Restart() {
  ++epoch_;
  workers_.clear();
  daemon_.clear();
  keeper_ = std::make_unique<keeper::Keeper>(device_.keeper_driver(), 0);
  const absl::Status opened = keeper_->Open();
  assert(opened.ok());
  static_cast<void>(opened);
  // Numbers never repeat among keepers: an extent that is handed over and goes moves them on.
  wire::ExtentRecord last;
  last.id = (static_cast<uint64_t>(getpid()) << 32) + epoch_ * kNumbersOfAKeeper;
  last.bytes = kUnit;
  const ipc::UniqueFd any(open("/dev/null", O_RDONLY | O_CLOEXEC));
  (void)keeper_->Adopt(0, last, any);
  keeper_->Free(0, last.id);
}

void SimKeeper::Hear(uint32_t worker) {
  std::deque<Told>& told = workers_[worker];
  const Told message = told.front();
  told.pop_front();
  scene_->Change();
  if (const wire::FreeExtent* free = std::get_if<wire::FreeExtent>(&message)) {
    keeper_->Free(worker, free->id);
  } else if (const wire::DropExtent* drop = std::get_if<wire::DropExtent>(&message)) {
    keeper_->Drop(worker, drop->id);
  } else if (const wire::ClaimLane* claim = std::get_if<wire::ClaimLane>(&message)) {
    keeper_->Claim(worker, claim->lane);
  } else {
    keeper_->ChangeOwner(worker, std::get<wire::ChangeOwner>(message));
  }
}

void SimKeeper::HearDaemon() {
  const wire::ToKeeper message = daemon_.front();
  daemon_.pop_front();
  scene_->Change();
  if (const wire::ReleaseWorker* gone = std::get_if<wire::ReleaseWorker>(&message)) {
    PROTOCOL_SAY(scene_, "the keeper hears ReleaseWorker %u", gone->worker);
    AfterAll()->ReleaseWorker(gone->worker);
  } else if (const wire::ReleaseOwner* ended = std::get_if<wire::ReleaseOwner>(&message)) {
    PROTOCOL_SAY(scene_, "the keeper hears the end of an owner, %lu", ended->owner.id);
    AfterAll()->ReleaseOwner(ended->owner);
  } else if (const wire::CountOutside* count = std::get_if<wire::CountOutside>(&message)) {
    PROTOCOL_SAY(scene_, "the keeper hears that session %lu has %lu bytes outside", count->owner.id,
                 count->bytes);
    keeper_->CountOutside(*count);
  }
}

bool SimKeeper::HearOne() {
  std::vector<uint32_t> tellers;
  for (const std::pair<const uint32_t, std::deque<Told>>& entry : workers_) {
    if (!entry.second.empty()) tellers.push_back(entry.first);
  }
  const uint64_t choices = tellers.size() + !daemon_.empty();
  if (choices == 0) return false;
  const uint64_t choice = scene_->dice.Below(choices);
  choice < tellers.size() ? Hear(tellers[choice]) : HearDaemon();
  return true;
}

keeper::Keeper* SimKeeper::After(uint32_t worker) {
  while (!workers_[worker].empty()) Hear(worker);
  return keeper_.get();
}

keeper::Keeper* SimKeeper::AfterAll() {
  for (std::pair<const uint32_t, std::deque<Told>>& entry : workers_) {
    while (!entry.second.empty()) Hear(entry.first);
  }
  return keeper_.get();
}

keeper::Keeper* SimKeeper::AfterDaemons() {
  while (!daemon_.empty()) HearDaemon();
  return AfterAll();
}

// --- a worker's way to the keeper ----------------------------------------------------------------

void WorkerExtents::BeginHandOver() {
  if (epoch_ == keeper_.epoch()) return;
  epoch_ = keeper_.epoch();
  const std::set<uint64_t> lanes = claims_.OnNewKeeper();
  to_hand_over_.clear();
  for (std::pair<const uint64_t, Held>& entry : held_) {
    entry.second.told = false;
    if (worker::SpeaksFor(entry.second.record.owner, lanes)) to_hand_over_.push_back(entry.first);
  }
  std::sort(to_hand_over_.begin(), to_hand_over_.end(), [this](uint64_t a, uint64_t b) {
    return held_.at(a).record.address < held_.at(b).record.address;
  });
}

bool WorkerExtents::HandOverOne() {
  if (epoch_ != keeper_.epoch()) to_hand_over_.clear();  // this keeper is gone, too
  if (to_hand_over_.empty()) return false;
  const ipc::UniqueFd any(open("/dev/null", O_RDONLY | O_CLOEXEC));
  Held& held = held_.at(to_hand_over_.front());
  to_hand_over_.pop_front();
  held.told = keeper_.After(worker_)->Adopt(worker_, held.record, any) == CUDA_SUCCESS;
  return true;
}

void WorkerExtents::FollowKeeper() {
  BeginHandOver();
  FinishHandOver();
}

void WorkerExtents::FinishHandOver() {
  while (HandOverOne()) {
  }
}

void WorkerExtents::Tell(const SimKeeper::Told& told) {
  if (epoch_ == keeper_.epoch()) keeper_.Post(worker_, told);
}

CUresult WorkerExtents::Create(const worker::ExtentRecord& wanted, worker::Extent* extent) {
  FollowKeeper();
  ipc::UniqueFd none;
  const wire::ExtentReply reply = keeper_.After(worker_)->Create(worker_, wanted, &none);
  if (reply.result != 0) return static_cast<CUresult>(reply.result);
  *extent = {reply.id, wanted.bytes, reply.id, reply.clear != 0};
  held_[reply.id] = {wanted};
  held_[reply.id].record.id = reply.id;
  return CUDA_SUCCESS;
}

void WorkerExtents::Free(const worker::Extent& extent) {
  FinishHandOver();
  if (held_[extent.id].told) Tell(wire::FreeExtent{extent.id});
  held_.erase(extent.id);
}

void WorkerExtents::Drop(const worker::Extent& extent) {
  FinishHandOver();
  if (held_[extent.id].told) Tell(wire::DropExtent{extent.id});
  held_.erase(extent.id);
}

CUresult WorkerExtents::List(const worker::Owner& owner,
                             std::vector<worker::ExtentRecord>* extents) {
  FollowKeeper();
  for (const wire::ExtentList& list : keeper_.AfterAll()->List(owner))
    extents->insert(extents->end(), list.extents, list.extents + list.count);
  return CUDA_SUCCESS;
}

CUresult WorkerExtents::Import(const worker::ExtentRecord& record, worker::Extent* extent) {
  FollowKeeper();
  ipc::UniqueFd none;
  const wire::ExtentReply reply = keeper_.After(worker_)->Import(worker_, record.id, &none);
  if (reply.result != 0) return static_cast<CUresult>(reply.result);
  *extent = {record.id, record.bytes, record.id, false};
  held_[record.id] = {record};
  return CUDA_SUCCESS;
}

void WorkerExtents::Claim(uint64_t lane) { Tell(wire::ClaimLane{lane}); }

CUresult WorkerExtents::Confirm(const worker::Extent& extent) {
  FollowKeeper();
  Held& held = held_.at(extent.id);
  if (held.told) return CUDA_SUCCESS;
  ipc::UniqueFd none;
  const wire::ExtentReply reply = keeper_.After(worker_)->Import(worker_, extent.id, &none);
  held.told = reply.result == 0;
  return static_cast<CUresult>(reply.result);
}

void WorkerExtents::ChangeOwner(const worker::Extent& extent, const worker::Owner& owner,
                                uint64_t address, uint64_t range) {
  FinishHandOver();
  worker::ExtentRecord& record = held_[extent.id].record;
  record.owner = owner;
  record.address = address;
  record.range = range;
  wire::ChangeOwner change;
  change.id = extent.id;
  change.owner = owner;
  change.address = address;
  change.range = range;
  Tell(change);
}

CUresult WorkerExtents::MemoryInfo(int device, uint64_t* free_bytes, uint64_t* total_bytes) {
  FollowKeeper();
  const wire::MemoryReply reply = keeper_.AfterAll()->Memory(static_cast<uint32_t>(device));
  *free_bytes = reply.free_bytes;
  *total_bytes = reply.total_bytes;
  return CUDA_SUCCESS;
}

}  // namespace protocol
