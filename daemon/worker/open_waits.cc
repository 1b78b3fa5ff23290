#include "daemon/worker/open_waits.h"

#include <utility>

#include "daemon/worker/memory_stream.h"
#include "ipc/driver_table.h"

namespace worker {
namespace {

constexpr unsigned kCondition = 3;  // what is left of the flags without FLUSH

thread_local OpenWaits* current = nullptr;

CUresult CUDAAPI WaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value,
                             unsigned flags) {
  return current->Add(stream, {address, value, flags, false});
}

CUresult CUDAAPI WaitValue64(CUstream stream, CUdeviceptr address, cuuint64_t value,
                             unsigned flags) {
  return current->Add(stream, {address, value, flags, true});
}

}  // namespace

OpenWaits::Current::Current(OpenWaits* waits) { current = waits; }
OpenWaits::Current::~Current() { current = nullptr; }

// Streams are always the session's own, so that the per-thread names mean the same.
void OpenWaits::Hook(ipc::DriverTable* table) {
  table->cuStreamWaitValue32_v2 = table->cuStreamWaitValue32_v2_ptsz = &WaitValue32;
  table->cuStreamWaitValue64_v2 = table->cuStreamWaitValue64_v2_ptsz = &WaitValue64;
}

OpenWaits::~OpenWaits() {
  Clear();
  const base::MutexLock lock(&mutex_);
  for (const CUevent event : spare_) environment_.driver->cuEventDestroy_v2(event);
}

bool OpenWaits::Answer(const Wait& wait, uint64_t* value) {
  const uint64_t all = wait.wide ? UINT64_MAX : UINT32_MAX;
  *value = wait.value & all;
  switch (wait.flags & kCondition) {
    case CU_STREAM_WAIT_VALUE_AND:
      return *value != 0;
    case CU_STREAM_WAIT_VALUE_NOR:
      return std::exchange(*value, 0) != all;
    default:
      return true;
  }
}

int OpenWaits::CurrentDevice() const {
  CUcontext context = nullptr;
  environment_.driver->cuCtxGetCurrent(&context);
  for (size_t device = 0; device < environment_.contexts.size(); ++device) {
    if (environment_.contexts[device] == context) return static_cast<int>(device);
  }
  return 0;
}

// The wait is noted first: the thread that ends the session must find it while the driver waits for
// room.
CUresult OpenWaits::Add(CUstream stream, const Wait& wait) {
  const ipc::DriverTable& driver = *environment_.driver;
  uint64_t value = 0;
  if (!Answer(wait, &value)) return CUDA_ERROR_INVALID_VALUE;
  CUevent event = nullptr;
  {
    const base::MutexLock lock(&mutex_);
    std::deque<Open>& waits = waits_[stream];
    Forget(&waits);
    waits.push_back({wait, CurrentDevice(), nullptr});
    if (!spare_.empty()) {
      event = spare_.back();
      spare_.pop_back();
    }
  }
  CUresult result = CUDA_SUCCESS;
  if (event == nullptr) result = driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
  if (result == CUDA_SUCCESS) {
    result = wait.wide ? driver.cuStreamWaitValue64_v2(stream, wait.address, wait.value, wait.flags)
                       : driver.cuStreamWaitValue32_v2(
                             stream, wait.address, static_cast<cuuint32_t>(wait.value), wait.flags);
  }
  if (result == CUDA_SUCCESS) result = driver.cuEventRecord(event, stream);
  const base::MutexLock lock(&mutex_);
  std::deque<Open>& waits = waits_[stream];
  if (result == CUDA_SUCCESS) {
    waits.back().after = event;
  } else {
    waits.pop_back();
    if (event != nullptr) spare_.push_back(event);
  }
  return result;
}

void OpenWaits::Forget(std::deque<Open>* waits) {
  while (!waits->empty() && waits->front().after != nullptr &&
         environment_.driver->cuEventQuery(waits->front().after) != CUDA_ERROR_NOT_READY) {
    spare_.push_back(waits->front().after);
    waits->pop_front();
  }
}

void OpenWaits::AnswerFirst() {
  std::map<CUdeviceptr, std::vector<Open>> words;
  uint64_t turn = 0;
  {
    const base::MutexLock lock(&mutex_);
    for (std::pair<const CUstream, std::deque<Open>>& entry : waits_) {
      Forget(&entry.second);
      if (entry.second.empty()) continue;
      const Open& first = entry.second.front();
      words[first.wait.address].push_back(first);
    }
    turn = ++turn_;
  }
  for (const std::pair<const CUdeviceptr, std::vector<Open>>& word : words) {
    const Open& open = word.second[turn % word.second.size()];
    uint64_t value = 0;
    (void)Answer(open.wait, &value);
    MemoryStream stream(environment_, open.device);
    if (stream.status() != CUDA_SUCCESS) continue;
    if (open.wait.wide) {
      environment_.driver->cuStreamWriteValue64_v2(stream.get(), word.first, value,
                                                   CU_STREAM_WRITE_VALUE_DEFAULT);
    } else {
      environment_.driver->cuStreamWriteValue32_v2(
          stream.get(), word.first, static_cast<cuuint32_t>(value), CU_STREAM_WRITE_VALUE_DEFAULT);
    }
    (void)stream.Wait();
  }
}

void OpenWaits::Clear() {
  const base::MutexLock lock(&mutex_);
  for (std::pair<const CUstream, std::deque<Open>>& entry : waits_) {
    for (const Open& open : entry.second) {
      if (open.after != nullptr) spare_.push_back(open.after);
    }
  }
  waits_.clear();
}

}  // namespace worker
