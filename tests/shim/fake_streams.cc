#include "tests/shim/fake_streams.h"

#include <atomic>
#include <utility>

#include "tests/shim/fake_driver.h"

namespace shim_test {
namespace {

std::atomic<uint64_t>* WordAt(CUdeviceptr address) {
  return reinterpret_cast<std::atomic<uint64_t>*>(address);
}

CUresult CreateStream(CUstream* stream, unsigned, int) {
  *stream = NewHandle<CUstream>();
  return CUDA_SUCCESS;
}
CUresult DestroyStream(CUstream stream) {
  FakeStreams::Process().Destroy(stream);
  return CUDA_SUCCESS;
}
CUresult QueryStream(CUstream stream) {
  return FakeStreams::Process().IsIdle(stream) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult WriteValue(CUstream stream, CUdeviceptr to, cuuint64_t value, unsigned) {
  FakeStreams::Process().Submit(stream, [to, value] {
    WordAt(to)->store(value, std::memory_order_release);
    return true;
  });
  return CUDA_SUCCESS;
}
CUresult WaitValue(CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned) {
  FakeStreams::Process().Submit(
      stream, [at, value] { return WordAt(at)->load(std::memory_order_acquire) >= value; });
  return CUDA_SUCCESS;
}
CUresult AddCallback(CUstream stream, CUstreamCallback callback, void* data, unsigned) {
  FakeStreams::Process().Submit(stream, [stream, callback, data] {
    callback(stream, CUDA_SUCCESS, data);
    return true;
  });
  return CUDA_SUCCESS;
}

CUresult CreateEvent(CUevent* event, unsigned) {
  *event = NewHandle<CUevent>();
  return CUDA_SUCCESS;
}
CUresult RecordEvent(CUevent event, CUstream stream) {
  FakeStreams::Process().Record(event, stream);
  return CUDA_SUCCESS;
}
CUresult QueryEvent(CUevent event) {
  return FakeStreams::Process().IsReached(event) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult WaitEvent(CUstream stream, CUevent event, unsigned) {
  FakeStreams::Process().Wait(stream, event);
  return CUDA_SUCCESS;
}

}  // namespace

FakeStreams& FakeStreams::Process() {
  static FakeStreams* const streams = new FakeStreams;
  return *streams;
}

void FakeStreams::Hold() {
  const base::MutexLock lock(&mutex_);
  held_ = true;
}

void FakeStreams::Release() {
  const base::MutexLock lock(&mutex_);
  held_ = false;
  DoWhatCanBeDone();
}

void FakeStreams::Add(CUstream stream, Work work) {
  Queue& queue = queues_[stream];
  queue.work.push_back(std::move(work));
  ++queue.submitted;
  DoWhatCanBeDone();
}

void FakeStreams::Submit(CUstream stream, Work work) {
  const base::MutexLock lock(&mutex_);
  Add(stream, std::move(work));
}

// One stream's work may be what another stream waits for.
void FakeStreams::DoWhatCanBeDone() {
  for (bool more = !held_; more;) {
    more = false;
    for (std::pair<const CUstream, Queue>& entry : queues_) {
      Queue& queue = entry.second;
      while (!queue.work.empty() && queue.work.front()()) {
        queue.work.pop_front();
        ++queue.done;
        more = true;
      }
    }
  }
}

bool FakeStreams::IsIdle(CUstream stream) {
  const base::MutexLock lock(&mutex_);
  DoWhatCanBeDone();
  const std::map<CUstream, Queue>::const_iterator found = queues_.find(stream);
  return found == queues_.end() || found->second.work.empty();
}

void FakeStreams::Destroy(CUstream stream) {
  const base::MutexLock lock(&mutex_);
  queues_.erase(stream);
}

bool FakeStreams::IsPast(const Point& point) const {
  const std::map<CUstream, Queue>::const_iterator found = queues_.find(point.stream);
  return found == queues_.end() || found->second.done >= point.submitted;
}

void FakeStreams::Record(CUevent event, CUstream stream) {
  const base::MutexLock lock(&mutex_);
  points_[event] = {stream, queues_[stream].submitted};
}

bool FakeStreams::IsReached(CUevent event) {
  const base::MutexLock lock(&mutex_);
  DoWhatCanBeDone();
  const std::map<CUevent, Point>::const_iterator found = points_.find(event);
  return found == points_.end() || IsPast(found->second);
}

void FakeStreams::Wait(CUstream stream, CUevent event) {
  const base::MutexLock lock(&mutex_);
  const std::map<CUevent, Point>::const_iterator found = points_.find(event);
  if (found == points_.end()) return;
  Add(stream, [this, point = found->second] {
    mutex_.AssertHeld();  // all work is done under it
    return IsPast(point);
  });
}

void AddStreams(ipc::DriverTable* table) {
  table->cuStreamCreateWithPriority = &CreateStream;
  table->cuStreamDestroy_v2 = &DestroyStream;
  table->cuStreamQuery = &QueryStream;
  table->cuStreamWriteValue64_v2 = &WriteValue;
  table->cuStreamWaitValue64_v2 = &WaitValue;
  table->cuStreamAddCallback = &AddCallback;
  table->cuEventCreate = &CreateEvent;
  table->cuEventRecord = &RecordEvent;
  table->cuEventQuery = &QueryEvent;
  table->cuStreamWaitEvent = &WaitEvent;
}

}  // namespace shim_test
