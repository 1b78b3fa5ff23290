#include "softgpu/driver/stream.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/mutex.h"
#include "softgpu/driver/capture.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/extension.h"
#include "softgpu/driver/stream_threads.h"
#include "softgpu/driver/virtual_device.h"
#include "softgpu/exec/spin.h"

namespace softgpu {
namespace {

constexpr uint64_t kQueuedMax = 1024;

std::atomic<uint64_t> next_stream_id{1};

// Initial-exec: reading it in a signal handler must not allocate.
[[gnu::tls_model("initial-exec")]] thread_local CUstream running_here = nullptr;

}  // namespace

Stream::Stream(std::shared_ptr<Context> context, unsigned flags, int priority)
    : context_(std::move(context)),
      flags_(flags),
      priority_(priority),
      id_(next_stream_id.fetch_add(1)) {}

Stream::~Stream() {
  assert(queue_.empty());
  if (VirtualDevice* const device = VirtualDevice::Get()) device->Forget(*this);
}

uint64_t Stream::Push(std::unique_ptr<Operation> operation, bool wake) {
  submitter_.Note();
  base::MutexLock lock(&mutex_);
  queue_.push_back(std::move(operation));
  const uint64_t sequence = submitted_.fetch_add(1) + 1;
  if (wake) CallThread();
  return sequence;
}

// A thread that serves the stream looks out for its next operation, and would go to sleep.
void Stream::RunSubmitted(uint64_t sequence) {
  {
    base::MutexLock lock(&mutex_);
    const bool first = queue_.size() == 1 && sequence == submitted_.load();
    if (!first || running_ || threads_ != 0 || blocked_ || !queue_.front()->dependencies.empty())
      return CallThread();
    running_ = true;
  }
  RunQueue(sequence);
}

void Stream::WaitForRoom() {
  const uint64_t submitted = submitted_.load();
  // Half of the queue, so that a submitter waits rarely, not at every operation.
  if (submitted - completed_.load() >= kQueuedMax) Wait(submitted - kQueuedMax / 2);
}

// --- running -------------------------------------------------------------------------------------

// Not under the lock: the call may take long, and whoever is called needs the lock.
void Stream::CallThread() {
  if (queue_.empty() || running_ || threads_ != 0 || blocked_) return;
  ++threads_;
  mutex_.Unlock();
  StreamThreads::Get().Call(shared_from_this());
  mutex_.Lock();
}

void Stream::Serve(std::shared_ptr<Stream> stream) {
  for (;;) {
    std::shared_ptr<Stream> next = StreamThreads::Get().AwaitCall(
        [&stream] { return !stream->Idle() || stream->closed(); }, stream->submitter_);
    if (next != nullptr) {
      stream->Leave();
      stream = std::move(next);
      continue;
    }
    if (!stream->Begin()) return;
    next = stream->RunAsThread();
    while (next != nullptr && next->TakeOver()) {
      stream->Leave();
      stream = std::move(next);
      next = stream->RunAsThread();
    }
  }
}

bool Stream::Begin() {
  base::MutexLock lock(&mutex_);
  if (queue_.empty() || running_ || blocked_) {
    --threads_;
    return false;
  }
  running_ = true;
  return true;
}

bool Stream::TakeOver() {
  base::MutexLock lock(&mutex_);
  if (queue_.empty() || running_ || blocked_) return false;
  running_ = true;
  ++threads_;
  return true;
}

void Stream::Leave() {
  base::MutexLock lock(&mutex_);
  --threads_;
  CallThread();
}

// A stream that waited for the last operation here goes on in this thread: waking another takes
// longer than many a kernel.
std::shared_ptr<Stream> Stream::RunAsThread() {
  std::shared_ptr<Stream> next;
  bool leaves = false;
  base::MutexLock lock(&mutex_);
  while (!queue_.empty() && !leaves) {
    const Operation& first = *queue_.front();  // nobody else takes it
    if (!first.dependencies.empty()) {
      lock.Unlock();
      const bool follows = Follows(first);
      lock.Lock();
      if (blocked_) break;
      if (follows) continue;  // not any more
    }
    std::unique_ptr<Operation> operation = TakeFirst();
    lock.Unlock();
    RunOne(std::move(operation));
    const Streams ready = Complete();
    if (!ready.empty()) {
      next = ready.back();
      leaves = Idle();
      for (const std::shared_ptr<Stream>& stream : ready) {
        if (stream != next || !leaves) stream->GoOn();
      }
    }
    lock.Lock();
  }
  running_ = false;
  return next;
}

void Stream::RunQueue(uint64_t sequence) {
  base::MutexLock lock(&mutex_);
  while (!queue_.empty() && !Done(sequence) &&
         queue_.front()->place() != Operation::Place::kStreamThread) {
    std::unique_ptr<Operation> operation = TakeFirst();
    lock.Unlock();
    for (const Dependency& dependency : operation->dependencies) {
      dependency.stream->Wait(dependency.sequence);
    }
    RunOne(std::move(operation));
    for (const std::shared_ptr<Stream>& ready : Complete()) ready->GoOn();
    lock.Lock();
  }
  running_ = false;
  CallThread();
}

std::unique_ptr<Operation> Stream::TakeFirst() {
  std::unique_ptr<Operation> operation = std::move(queue_.front());
  queue_.pop_front();
  return operation;
}

// What the operation holds is released before a waiter goes on.
void Stream::RunOne(std::unique_ptr<Operation> operation) {
  runner_.Note();
  const CUstream outer = std::exchange(running_here, handle());
  CUresult fault = context_->Fault();
  if (fault == CUDA_SUCCESS) {
    fault = operation->Run();
    if (fault != CUDA_SUCCESS) context_->RaiseFault(fault);
  } else {
    operation->Skip(fault);
  }
  operation.reset();
  running_here = outer;
}

Stream::Streams Stream::Complete() {
  completed_.fetch_add(1);
  if (waiters_.load() == 0) return {};
  Streams ready;
  {
    base::MutexLock lock(&mutex_);  // a waiter is past its check or not yet asleep
    for (const Follower& follower : followers_) {
      if (Done(follower.sequence)) ready.push_back(follower.stream);
    }
    std::erase_if(followers_, [this](const Follower& one) { return Done(one.sequence); });
    waiters_.fetch_sub(ready.size());
  }
  progress_.NotifyAll();
  for (const std::shared_ptr<Stream>& stream : ready) stream->Unblock();
  return ready;
}

// --- streams that wait for others ----------------------------------------------------------------

bool Stream::Follows(const Operation& operation) {
  for (const Dependency& dependency : operation.dependencies) {
    if (dependency.stream->Done(dependency.sequence)) continue;
    {
      base::MutexLock lock(&mutex_);
      blocked_ = true;  // before the other can say that it is done
    }
    if (dependency.stream->Follow({dependency.sequence, shared_from_this()})) return true;
    Unblock();
  }
  return false;
}

bool Stream::Follow(const Follower& follower) {
  base::MutexLock lock(&mutex_);
  waiters_.fetch_add(1);
  if (Done(follower.sequence)) {
    waiters_.fetch_sub(1);
    return false;
  }
  followers_.push_back(follower);
  CallThread();
  return true;
}

void Stream::Unblock() {
  base::MutexLock lock(&mutex_);
  blocked_ = false;
}

void Stream::GoOn() {
  base::MutexLock lock(&mutex_);
  CallThread();
}

// --- waiting -------------------------------------------------------------------------------------

bool Stream::TryRunHere(uint64_t sequence) {
  {
    base::MutexLock lock(&mutex_);
    if (running_ || queue_.empty()) return false;
    if (queue_.front()->place() == Operation::Place::kStreamThread) {
      CallThread();
      return false;
    }
    running_ = true;
    blocked_ = false;  // it waits as any thread does
  }
  RunQueue(sequence);
  return true;
}

void Stream::Wait(uint64_t sequence) {
  while (!Done(sequence)) {
    if (TryRunHere(sequence)) continue;
    if (!context_->blocking_sync() && SpinUntil([&] { return Done(sequence); }, runner_)) return;
    waiters_.fetch_add(1);
    {
      base::MutexLock lock(&mutex_);
      CallThread();
      while (!Done(sequence)) progress_.Wait(&mutex_);
    }
    waiters_.fetch_sub(1);
  }
}

void Stream::Close() {
  closed_ = true;
  AbandonCapture(*this);
}

// --- attributes ----------------------------------------------------------------------------------

CUresult Stream::GetAttribute(CUstreamAttrID id, CUstreamAttrValue* value) {
  base::MutexLock lock(&mutex_);
  switch (id) {
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      value->priority = priority();
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      *value = attributes_[id];
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult Stream::SetAttribute(CUstreamAttrID id, const CUstreamAttrValue& value) {
  base::MutexLock lock(&mutex_);
  switch (id) {
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      priority_ = value.priority;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      attributes_[id] = value;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

void Stream::CopyAttributes(Stream& other) {
  if (&other == this) return;
  std::map<int, CUstreamAttrValue> attributes;
  {
    base::MutexLock lock(&other.mutex_);
    attributes = other.attributes_;
  }
  base::MutexLock lock(&mutex_);
  attributes_ = std::move(attributes);
  priority_ = other.priority();
}

}  // namespace softgpu

extern "C" __attribute__((visibility("default"))) CUstream softgpuRunningStream() {
  return softgpu::running_here;
}
