#include "daemon/worker/event_times.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "daemon/worker/memory_stream.h"
#include "ipc/futex.h"

namespace worker {
namespace {

using common::EventTime;
using common::kSwapOffset;
using common::kTimesOffset;

constexpr size_t kBytes = kSwapOffset - kTimesOffset;

}  // namespace

EventTimes::EventTimes(const Environment& environment, int file) : environment_(environment) {
  struct stat stat {};
  if (file < 0 || fstat(file, &stat) != 0) return;
  // Sparse: what is written takes memory.
  if (static_cast<size_t>(stat.st_size) < kSwapOffset && ftruncate(file, kSwapOffset) != 0) return;
  void* const at = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, kTimesOffset);
  if (at != MAP_FAILED) times_ = static_cast<EventTime*>(at);
}

EventTimes::~EventTimes() {
  Clear(false);
  if (times_ != nullptr) munmap(times_, kBytes);
}

EventTime* EventTimes::At(ipc::HandleId id) const { return &times_[static_cast<size_t>(id)]; }

void EventTimes::OnBind(ipc::HandleId id, CUevent event) {
  if (times_ != nullptr && At(id)->device != 0) kept_[event] = *At(id);
}

void EventTimes::OnRelease(ipc::HandleId id, CUevent event) {
  kept_.erase(event);
  if (times_ != nullptr && At(id)->device != 0) *At(id) = {};
}

void EventTimes::Clear(bool names) {
  kept_.clear();
  for (Base& base : bases_) {
    if (base.event != nullptr) environment_.driver->cuEventDestroy_v2(base.event);
    base = {};
  }
  if (names && times_ != nullptr) (void)madvise(times_, kBytes, MADV_REMOVE);
}

// From base to base by the device's own clock.
CUresult EventTimes::Measure(int device) {
  const ipc::DriverTable& driver = *environment_.driver;
  Base& base = bases_[static_cast<size_t>(device)];
  MemoryStream stream(environment_, device);
  if (stream.status() != CUDA_SUCCESS) return stream.status();
  Base now;
  CUresult result = driver.cuEventCreate(&now.event, CU_EVENT_DEFAULT);
  if (result != CUDA_SUCCESS) return result;
  result = driver.cuEventRecord(now.event, stream.get());
  const CUresult waited = stream.Wait();
  if (result == CUDA_SUCCESS) result = waited;
  now.ms = static_cast<double>(ipc::MonotonicNs()) / 1e6;
  if (result == CUDA_SUCCESS && base.event != nullptr) {
    float passed = 0;
    result = driver.cuEventElapsedTime_v2(&passed, base.event, now.event);
    now.ms = base.ms + static_cast<double>(passed);
  }
  std::swap(base, now);
  if (now.event != nullptr) driver.cuEventDestroy_v2(now.event);
  return result;
}

CUresult EventTimes::TimeOf(CUevent event, int device, double* ms) {
  const Base& base = bases_[static_cast<size_t>(device)];
  float before = 0;
  const CUresult result = environment_.driver->cuEventElapsedTime_v2(&before, event, base.event);
  *ms = base.ms - static_cast<double>(before);
  return result;
}

void EventTimes::Save(int device, std::span<const Recorded> events) {
  if (times_ == nullptr || events.empty()) return;
  const bool measured = Measure(device) == CUDA_SUCCESS;
  for (const Recorded& recorded : events) {
    EventTime time{0, static_cast<uint64_t>(device) + 1};
    // One without a time (CU_EVENT_DISABLE_TIMING) has none in the next worker.
    if (!measured || TimeOf(recorded.event, device, &time.ms) != CUDA_SUCCESS) time = {};
    if (time.device != 0 || At(recorded.id)->device != 0) *At(recorded.id) = time;
  }
}

CUresult EventTimes::Elapsed(float* milliseconds, CUevent start, CUevent end) {
  const ipc::DriverTable& driver = *environment_.driver;
  const absl::flat_hash_map<CUevent, EventTime>::const_iterator first = kept_.find(start);
  const absl::flat_hash_map<CUevent, EventTime>::const_iterator last = kept_.find(end);
  if (first == kept_.end() && last == kept_.end())
    return driver.cuEventElapsedTime_v2(milliseconds, start, end);
  EventTime from = first == kept_.end() ? EventTime{0, last->second.device} : first->second;
  EventTime to = last == kept_.end() ? EventTime{0, first->second.device} : last->second;
  if (from.device != to.device) return CUDA_ERROR_INVALID_HANDLE;
  if (first == kept_.end() || last == kept_.end()) {
    const CUevent mine = first == kept_.end() ? start : end;
    const int device = static_cast<int>(from.device) - 1;
    if (driver.cuEventQuery(mine) == CUDA_ERROR_NOT_READY) return CUDA_ERROR_NOT_READY;
    CUresult result = Measure(device);
    if (result == CUDA_SUCCESS)
      result = TimeOf(mine, device, first == kept_.end() ? &from.ms : &to.ms);
    if (result != CUDA_SUCCESS) return result;
  }
  *milliseconds = static_cast<float>(to.ms - from.ms);
  return CUDA_SUCCESS;
}

}  // namespace worker
