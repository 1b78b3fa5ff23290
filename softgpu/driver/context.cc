#include "softgpu/driver/context.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/find.h"
#include "base/mutex.h"
#include "softgpu/driver/device.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/stream.h"
#include "softgpu/driver/thread_state.h"
#include "softgpu/driver/virtual_device.h"

namespace softgpu {
namespace {

std::atomic<uint64_t> next_context_id{1};

constexpr size_t kPrintBytesMax =
    1u << 20;  // what waits for a synchronisation; more is written at once

// Of all streams those that `stream` is ordered with, whether they have work or not: in virtual
// time they may be busy when they are idle already.
std::vector<std::shared_ptr<Stream>> OrderedWith(const Stream& stream,
                                                 const std::vector<std::shared_ptr<Stream>>& all,
                                                 const std::shared_ptr<Stream>& legacy) {
  std::vector<std::shared_ptr<Stream>> ordered;
  for (const std::shared_ptr<Stream>& other : all) {
    const bool follows = &stream == legacy.get() ? other->blocking() : other == legacy;
    if (follows && other.get() != &stream) ordered.push_back(other);
  }
  return ordered;
}

// The program has seen that all work of these streams so far is done.
void Observe(const std::vector<std::shared_ptr<Stream>>& streams) {
  if (VirtualDevice* const device = VirtualDevice::Get()) device->ObserveEnd(streams);
}

void WriteOut(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

Context::Context(Device* device, unsigned flags, bool primary)
    : device_(device),
      id_(next_context_id.fetch_add(1)),
      primary_(primary),
      flags_(flags),
      limits_(device, id_) {}

Context::~Context() = default;

std::shared_ptr<Context> Context::Create(Device* device, unsigned flags, bool primary) {
  const std::shared_ptr<Context> context = std::make_shared<Context>(device, flags, primary);
  Driver::Get().contexts.Add(context);
  return context;
}

std::shared_ptr<Context> Context::Current() {
  const ThreadState& thread = ThreadState::Get();
  return thread.contexts.empty() ? nullptr : thread.contexts.back();
}

void Context::ForgetThread(uint64_t thread_id) {
  if (!Driver::Ready()) return;
  for (const std::shared_ptr<Context>& context : Driver::Get().contexts.All()) {
    std::shared_ptr<Stream> stream;
    {
      base::MutexLock lock(&context->order_mutex_);
      const auto it = context->per_thread_.find(thread_id);
      if (it == context->per_thread_.end()) continue;
      stream = std::move(it->second);
      context->per_thread_.erase(it);
    }
    stream->Close();
  }
}

void Context::Destroy() {
  if (destroyed_.exchange(true)) return;
  Synchronize();
  FlushPrints();
  std::vector<std::shared_ptr<Stream>> streams;
  {
    base::MutexLock lock(&order_mutex_);
    streams.swap(streams_);
    per_thread_.clear();
    legacy_ = nullptr;
  }
  for (const std::shared_ptr<Stream>& stream : streams) {
    Driver::Get().streams.Remove(stream.get());
    stream->Close();
  }
  Driver::Get().ForgetContext(*this);
  limits_.DropHeap();
}

// --- streams

std::shared_ptr<Stream> Context::AddStreamLocked(unsigned flags, int priority) {
  std::erase_if(streams_, [](const std::shared_ptr<Stream>& stream) {
    return stream->closed() && stream->Idle();
  });
  streams_.push_back(std::make_shared<Stream>(shared_from_this(), flags, priority));
  return streams_.back();
}

std::shared_ptr<Stream> Context::CreateStream(unsigned flags, int priority) {
  std::shared_ptr<Stream> stream;
  {
    base::MutexLock lock(&order_mutex_);
    stream = AddStreamLocked(flags, priority);
  }
  Driver::Get().streams.Add(stream);
  return stream;
}

void Context::RemoveStream(const std::shared_ptr<Stream>& stream) {
  stream->Close();
  base::MutexLock lock(&order_mutex_);
  if (stream->Idle()) std::erase(streams_, stream);
}

std::shared_ptr<Stream> Context::LegacyStream() {
  base::MutexLock lock(&order_mutex_);
  if (legacy_ == nullptr) legacy_ = AddStreamLocked(CU_STREAM_DEFAULT, 0);
  return legacy_;
}

std::shared_ptr<Stream> Context::PerThreadStream(uint64_t thread_id) {
  base::MutexLock lock(&order_mutex_);
  std::shared_ptr<Stream>& stream = per_thread_[thread_id];
  if (stream == nullptr) stream = AddStreamLocked(CU_STREAM_DEFAULT, 0);
  return stream;
}

bool Context::IsLegacy(const Stream& stream) {
  base::MutexLock lock(&order_mutex_);
  return legacy_.get() == &stream;
}

// Work in the legacy stream waits for all blocking streams, and they wait for it.
void Context::AddDependencies(const Stream& stream, Operation* operation) {
  if (&stream != legacy_.get()) {
    if (legacy_ != nullptr && !legacy_->Idle()) {
      operation->dependencies.push_back({legacy_, legacy_->submitted()});
    }
    return;
  }
  for (const std::shared_ptr<Stream>& other : streams_) {
    if (other.get() != &stream && other->blocking() && !other->Idle()) {
      operation->dependencies.push_back({other, other->submitted()});
    }
  }
}

uint64_t Context::Submit(const std::shared_ptr<Stream>& stream,
                         std::unique_ptr<Operation> operation, bool wake) {
  stream->WaitForRoom();
  const bool here = wake && operation->place() == Operation::Place::kSubmitter;
  VirtualDevice* const device = VirtualDevice::Get();
  uint64_t sequence = 0;
  if (!stream->blocking()) {
    if (device != nullptr) device->Enter(*stream, {}, operation.get());
    sequence = stream->Push(std::move(operation), wake && !here);
  } else {
    base::MutexLock lock(&order_mutex_);
    AddDependencies(*stream, operation.get());
    if (device != nullptr)
      device->Enter(*stream, OrderedWith(*stream, streams_, legacy_), operation.get());
    sequence = stream->Push(std::move(operation), wake && !here);
  }
  if (here) stream->RunSubmitted(sequence);
  return sequence;
}

CUresult Context::Run(const std::shared_ptr<Stream>& stream, std::unique_ptr<Operation> operation) {
  stream->Wait(Submit(stream, std::move(operation), false));
  Observe({stream});
  FlushPrints();
  return Fault();
}

std::vector<std::shared_ptr<Stream>> Context::Streams() {
  base::MutexLock lock(&order_mutex_);
  return streams_;
}

CUresult Context::Synchronize() {
  for (const Dependency& pending : Pending()) pending.stream->Wait(pending.sequence);
  Observe(Streams());
  FlushPrints();
  return Fault();
}

CUresult Context::Synchronize(const std::shared_ptr<Stream>& stream) {
  std::vector<Dependency> pending;
  std::vector<std::shared_ptr<Stream>> seen = {stream};
  {
    base::MutexLock lock(&order_mutex_);
    if (stream == legacy_) {
      seen = OrderedWith(*stream, streams_, legacy_);
      seen.push_back(stream);
      for (const std::shared_ptr<Stream>& other : streams_) {
        if (other->blocking() && !other->Idle()) pending.push_back({other, other->submitted()});
      }
    } else {
      pending.push_back({stream, stream->submitted()});
    }
  }
  for (const Dependency& dependency : pending) dependency.stream->Wait(dependency.sequence);
  Observe(seen);
  FlushPrints();
  return Fault();
}

std::vector<Dependency> Context::Pending() {
  std::vector<Dependency> pending;
  for (const std::shared_ptr<Stream>& stream : Streams()) {
    if (!stream->Idle()) pending.push_back({stream, stream->submitted()});
  }
  return pending;
}

// --- faults

CUresult Context::Fault() const {
  const CUresult fault = fault_.load();
  return fault != CUDA_SUCCESS ? fault : Driver::Get().process_fault();
}

void Context::RaiseFault(CUresult code) {
  CUresult none = CUDA_SUCCESS;
  fault_.compare_exchange_strong(none, code);
  cancel_ = true;
  Driver::Get().RaiseFault(code);
}

// --- device printf

void Context::Print(CUstream stream, std::string_view text) {
  if (Driver::Get().PrintToHandler(stream, text)) return;
  std::string overflow;
  {
    base::MutexLock lock(&mutex_);
    prints_.append(text);
    if (prints_.size() > kPrintBytesMax) overflow.swap(prints_);
  }
  if (!overflow.empty()) WriteOut(overflow);
}

void Context::FlushPrints() {
  std::string text;
  {
    base::MutexLock lock(&mutex_);
    if (prints_.empty()) return;
    text.swap(prints_);
  }
  WriteOut(text);
}

// --- peers

bool Context::EnablePeer(uint64_t context_id) {
  base::MutexLock lock(&mutex_);
  return peers_.insert(context_id).second;
}

bool Context::DisablePeer(uint64_t context_id) {
  base::MutexLock lock(&mutex_);
  return peers_.erase(context_id) != 0;
}

}  // namespace softgpu
