#include "softgpu/driver/stream.h"

#include <pthread.h>
#include <signal.h>

#include <cassert>
#include <thread>
#include <utility>

#include "softgpu/driver/capture.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/spin.h"

namespace softgpu {
namespace {

constexpr uint64_t kQueuedMax = 1024;

std::atomic<uint64_t> next_id{1};

// Signals are the application's: none shall be delivered to a thread it doesn't know. Faults of
// kernels arrive as SIGSEGV, SIGBUS and SIGFPE, which stay open.
void BlockSignals() {
  sigset_t all;
  sigfillset(&all);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP})
    sigdelset(&all, signal);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace

Stream::Stream(std::shared_ptr<Context> context, unsigned flags, int priority)
    : context_(std::move(context)), flags_(flags), priority_(priority), id_(next_id.fetch_add(1)) {}

Stream::~Stream() { assert(queue_.empty()); }

uint64_t Stream::Push(std::unique_ptr<Operation> operation, bool wake) {
  std::lock_guard<std::mutex> lock(mutex_);
  queue_.push_back(std::move(operation));
  const uint64_t sequence = submitted_.fetch_add(1) + 1;
  if (wake && !running_) WakeThread();
  return sequence;
}

void Stream::WaitForRoom() {
  const uint64_t submitted = submitted_.load();
  // Half of the queue, so that a submitter waits rarely, not at every operation.
  if (submitted - completed_.load() >= kQueuedMax) Wait(submitted - kQueuedMax / 2);
}

void Stream::WakeThread() {
  if (!thread_started_) {
    thread_started_ = true;
    std::thread([self = shared_from_this()] { self->ThreadMain(); }).detach();
  } else if (thread_asleep_) {
    thread_asleep_ = false;
    work_.notify_one();
  }
}

void Stream::Close() {
  std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  if (thread_started_) WakeThread();
}

void Stream::ThreadMain() {
  BlockSignals();
  pthread_setname_np(pthread_self(), "softgpu-stream");
  while (SleepUntilWork()) RunQueue(UINT64_MAX, true);
}

bool Stream::SleepUntilWork() {
  SpinUntil([this] { return !Idle() || closed(); });
  std::unique_lock<std::mutex> lock(mutex_);
  while (queue_.empty() || running_) {
    if (queue_.empty() && closed_) return false;
    thread_asleep_ = true;
    work_.wait(lock, [this] { return !thread_asleep_; });
  }
  running_ = true;
  return true;
}

void Stream::RunQueue(uint64_t sequence, bool stream_thread) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!queue_.empty() && !Done(sequence)) {
    if (!stream_thread && queue_.front()->place() == Operation::Place::kStreamThread) break;
    std::unique_ptr<Operation> operation = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    RunOne(operation.get());
    operation.reset();  // what it holds is released before a waiter goes on
    Complete();
    lock.lock();
  }
  running_ = false;
  if (!queue_.empty() && !stream_thread) WakeThread();
}

void Stream::RunOne(Operation* operation) {
  for (const Dependency& dependency : operation->dependencies) {
    dependency.stream->Wait(dependency.sequence);
  }
  CUresult fault = context_->Fault();
  if (fault == CUDA_SUCCESS) {
    fault = operation->Run();
    if (fault != CUDA_SUCCESS) context_->RaiseFault(fault);
  } else {
    operation->Skip(fault);
  }
}

void Stream::Complete() {
  completed_.fetch_add(1);
  if (waiters_.load() == 0) return;
  { std::lock_guard<std::mutex> lock(mutex_); }  // a waiter is past its check or not yet asleep
  progress_.notify_all();
}

bool Stream::TryRunHere(uint64_t sequence) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (running_ || queue_.empty()) return false;
    if (queue_.front()->place() == Operation::Place::kStreamThread) {
      WakeThread();
      return false;
    }
    running_ = true;
  }
  RunQueue(sequence, false);
  return true;
}

void Stream::Wait(uint64_t sequence) {
  while (!Done(sequence)) {
    if (TryRunHere(sequence)) continue;
    if (!context_->blocking_sync() && SpinUntil([&] { return Done(sequence); })) return;
    waiters_.fetch_add(1);
    {
      std::unique_lock<std::mutex> lock(mutex_);
      if (!running_ && !queue_.empty()) WakeThread();
      progress_.wait(lock, [&] { return Done(sequence); });
    }
    waiters_.fetch_sub(1);
  }
}

std::shared_ptr<Capture> Stream::capture() {
  std::lock_guard<std::mutex> lock(mutex_);
  return capture_;
}

void Stream::SetCapture(std::shared_ptr<Capture> capture) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    capture_.swap(capture);
    capturing_ = capture_ != nullptr;
  }
  context_->CaptureChanged(blocking() ? (capturing() ? 1 : -1) : 0);
}

CUresult Stream::GetAttribute(CUstreamAttrID id, CUstreamAttrValue* value) {
  std::lock_guard<std::mutex> lock(mutex_);
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
  std::lock_guard<std::mutex> lock(mutex_);
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
  std::scoped_lock lock(mutex_, other.mutex_);
  attributes_ = other.attributes_;
  priority_ = other.priority();
}

}  // namespace softgpu
