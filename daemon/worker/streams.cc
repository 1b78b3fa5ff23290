#include "daemon/worker/streams.h"

#include <algorithm>
#include <utility>

#include "ipc/driver_table.h"

namespace worker {

StreamTable::~StreamTable() {
  Clear();
  if (environment_.owners != nullptr) environment_.owners->RemoveAll(owner_);
}

CUresult StreamTable::Open(Stream* stream, int priority) {
  const ipc::DriverTable& driver = *environment_.driver;
  const CUresult result =
      driver.cuStreamCreateWithPriority(&stream->driver, CU_STREAM_NON_BLOCKING, priority);
  if (result != CUDA_SUCCESS) return result;
  if (environment_.owners != nullptr) environment_.owners->Add(stream->driver, owner_);
  if (last_join_ != nullptr) driver.cuStreamWaitEvent(stream->driver, last_join_, 0);
  CUevent& join = joins_[stream->device];
  if (join == nullptr) {
    const CUresult made = driver.cuEventCreate(&join, CU_EVENT_DISABLE_TIMING);
    if (made != CUDA_SUCCESS) return made;
  }
  return driver.cuEventCreate(&stream->order, CU_EVENT_DISABLE_TIMING);
}

void StreamTable::Close(Stream* stream) {
  if (stream->order != nullptr) environment_.driver->cuEventDestroy_v2(stream->order);
  if (stream->driver != nullptr) environment_.driver->cuStreamDestroy_v2(stream->driver);
  stream->order = nullptr;
  stream->driver = nullptr;
}

CUresult StreamTable::Create(uint32_t slot, unsigned flags, int priority, int device,
                             Stream** created) {
  if (slot < ipc::limits::kLegacySlots || slot >= ipc::limits::kStreamsMax) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (const auto& [driver, other] : named_) {
    if (other->slot == slot) return CUDA_ERROR_INVALID_VALUE;
  }
  CloseEnded();
  if (ending_.size() >= ipc::limits::kStreamsMax) return CUDA_ERROR_OUT_OF_MEMORY;
  std::unique_ptr<Stream> stream = std::make_unique<Stream>();
  stream->slot = slot;
  stream->device = device;
  stream->blocking = (flags & CU_STREAM_NON_BLOCKING) == 0;
  const CUresult result = Open(stream.get(), priority);
  if (result != CUDA_SUCCESS) {
    Close(stream.get());
    return result;
  }
  for (const std::unique_ptr<Stream>& other : ending_) {
    if (other->slot == slot) After(stream.get(), other.get());
  }
  blocking_count_ += stream->blocking;
  *created = stream.get();
  named_[stream->driver] = std::move(stream);
  return CUDA_SUCCESS;
}

CUresult StreamTable::Destroy(CUstream driver) {
  const auto it = named_.find(driver);
  if (it == named_.end()) return CUDA_ERROR_INVALID_HANDLE;
  it->second->ending = true;
  ending_.push_back(std::move(it->second));
  named_.erase(it);
  CloseEnded();
  return CUDA_SUCCESS;
}

void StreamTable::CloseEnded() {
  std::erase_if(ending_, [this](const std::unique_ptr<Stream>& stream) {
    if (environment_.driver->cuStreamQuery(stream->driver) != CUDA_SUCCESS) return false;
    blocking_count_ -= stream->blocking;
    Close(stream.get());
    return true;
  });
}

StreamTable::Stream* StreamTable::Legacy(int device) {
  Stream* const stream = &legacy_[device];
  if (stream->driver == nullptr) {
    stream->legacy = true;
    stream->slot = devices_.NumberOf(device);  // as its client counts
    stream->device = device;
    if (Open(stream, 0) != CUDA_SUCCESS) {
      Close(stream);
      return nullptr;
    }
  }
  return stream;
}

StreamTable::Stream* StreamTable::OfDriver(CUstream driver) {
  if (driver == nullptr) return nullptr;  // as of a legacy stream that was never used
  const auto it = named_.find(driver);
  if (it != named_.end()) return it->second.get();
  for (Stream& stream : legacy_) {
    if (stream.driver == driver) return &stream;
  }
  return nullptr;
}

StreamTable::Stream* StreamTable::EndingOfDriver(CUstream driver) {
  for (const std::unique_ptr<Stream>& stream : ending_) {
    if (stream->driver == driver) return stream.get();
  }
  return nullptr;
}

void StreamTable::After(Stream* later, Stream* earlier) {
  environment_.driver->cuEventRecord(earlier->order, earlier->driver);
  environment_.driver->cuStreamWaitEvent(later->driver, earlier->order, 0);
}

void StreamTable::AfterBlocking(Stream* legacy, Stream* stream) {
  if (!stream->blocking || stream->device != legacy->device) return;
  if (stream->submitted == stream->before_legacy) return;
  After(legacy, stream);
  stream->before_legacy = stream->submitted;
}

void StreamTable::Use(Stream* stream) {
  if (stream->legacy && blocking_count_ != 0) {
    for (auto& [driver, other] : named_) AfterBlocking(stream, other.get());
    for (const std::unique_ptr<Stream>& other : ending_) AfterBlocking(stream, other.get());
  } else if (stream->blocking) {
    Stream& legacy = legacy_[stream->device];
    if (legacy.driver != nullptr && legacy.submitted != stream->after_legacy) {
      After(stream, &legacy);
      stream->after_legacy = legacy.submitted;
    }
  }
  ++stream->submitted;
  if (watcher_ != nullptr && watcher_->watches) [[unlikely]]
    watcher_->OnUse(*stream);
}

// One busy stream gathers the others, and all wait for it: events for streams, not for pairs. An
// ending one has nothing more to wait with.
void StreamTable::Join() {
  std::vector<Stream*> all = All();
  Stream* hub = nullptr;
  for (Stream* stream : all) {
    if (environment_.driver->cuStreamQuery(stream->driver) == CUDA_SUCCESS) continue;
    if (hub == nullptr) {
      hub = stream;
    } else {
      After(hub, stream);
    }
  }
  last_join_ = hub != nullptr ? joins_[hub->device] : nullptr;
  if (hub == nullptr) return;
  environment_.driver->cuEventRecord(last_join_, hub->driver);
  for (Stream* stream : all) {
    if (stream != hub && !stream->ending)
      environment_.driver->cuStreamWaitEvent(stream->driver, last_join_, 0);
  }
}

std::vector<StreamTable::Stream*> StreamTable::All() {
  CloseEnded();
  std::vector<Stream*> all;
  for (Stream& stream : legacy_) {
    if (stream.driver != nullptr) all.push_back(&stream);
  }
  for (auto& [driver, stream] : named_) all.push_back(stream.get());
  for (const std::unique_ptr<Stream>& stream : ending_) all.push_back(stream.get());
  return all;
}

void StreamTable::Clear() {
  for (auto& [driver, stream] : named_) Close(stream.get());
  named_.clear();
  for (const std::unique_ptr<Stream>& stream : ending_) Close(stream.get());
  ending_.clear();
  for (Stream& stream : legacy_) Close(&stream);
  for (CUevent& join : joins_) {
    if (join != nullptr) environment_.driver->cuEventDestroy_v2(join);
    join = nullptr;
  }
  last_join_ = nullptr;
  blocking_count_ = 0;
}

}  // namespace worker
