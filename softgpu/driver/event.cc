#include "softgpu/driver/event.h"

#include <time.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/mutex.h"
#include "softgpu/driver/capture.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/stream.h"
#include "softgpu/driver/virtual_device.h"

namespace softgpu {
namespace {

using scheduler::streams::Timeline;
using Moment = Timeline::Moment;

class RecordOperation final : public Operation {
 public:
  explicit RecordOperation(std::shared_ptr<Event::Mark> mark)
      : Operation(Place::kSubmitter), mark_(std::move(mark)) {}
  CUresult Run() override {
    mark_->at_ns = Event::NowNs();
    return CUDA_SUCCESS;
  }
  void Skip(CUresult) override { mark_->at_ns = Event::NowNs(); }
  Moment Enter(Timeline* timeline, const Moment& after) override {
    return mark_->moment = timeline->Join({after});
  }

 private:
  const std::shared_ptr<Event::Mark> mark_;
};

// Waits by its dependencies alone; in virtual time by the moment that they stand for.
class WaitOperation final : public Operation {
 public:
  explicit WaitOperation(Moment moment) : moment_(std::move(moment)) {}
  CUresult Run() override { return CUDA_SUCCESS; }
  Moment Enter(Timeline* timeline, const Moment& after) override {
    return timeline->Join({after, moment_});
  }

 private:
  const Moment moment_;
};

}  // namespace

int64_t Event::NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

bool Event::Mark::Done() const {
  return std::all_of(dependencies.begin(), dependencies.end(), [](const Dependency& dependency) {
    return dependency.stream->Done(dependency.sequence);
  });
}

double Event::Mark::Observe() const {
  VirtualDevice* const device = VirtualDevice::Get();
  return device != nullptr ? device->Observe(moment) : static_cast<double>(at_ns.load());
}

void Event::Record(const std::shared_ptr<Stream>& stream) {
  const std::shared_ptr<Mark> mark = std::make_shared<Mark>();
  const uint64_t sequence =
      stream->context()->Submit(stream, std::make_unique<RecordOperation>(mark));
  mark->dependencies.push_back({stream, sequence});
  SetMark(mark);
}

void Event::RecordContext(Context& context) {
  const std::shared_ptr<Mark> mark = std::make_shared<Mark>();
  mark->dependencies = context.Pending();
  mark->at_ns = Event::NowNs();
  if (VirtualDevice* const device = VirtualDevice::Get()) {
    mark->moment = device->EndOf(context.Streams());
  }
  SetMark(mark);
}

std::shared_ptr<Event::Mark> Event::mark() const {
  base::MutexLock lock(&mutex_);
  return mark_;
}

void Event::SetMark(std::shared_ptr<Mark> mark) {
  base::MutexLock lock(&mutex_);
  mark_ = std::move(mark);
}

CUresult Event::Synchronize() const {
  const std::shared_ptr<Mark> current = mark();
  if (current == nullptr) return CUDA_SUCCESS;
  CUresult result = CUDA_SUCCESS;
  for (const Dependency& dependency : current->dependencies) {
    dependency.stream->Wait(dependency.sequence);
    dependency.stream->context()->FlushPrints();
    if (result == CUDA_SUCCESS) result = dependency.stream->context()->Fault();
  }
  current->Observe();
  return result;
}

CUresult Event::Elapsed(const Event& start, const Event& end, float* milliseconds) {
  if (!start.timed() || !end.timed()) return CUDA_ERROR_INVALID_HANDLE;
  const std::shared_ptr<Mark> first = start.mark(), last = end.mark();
  if (first == nullptr || last == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!first->Done() || !last->Done()) return CUDA_ERROR_NOT_READY;
  *milliseconds = static_cast<float>((last->Observe() - first->Observe()) / 1e6);
  return CUDA_SUCCESS;
}

CUresult WaitForMark(const std::shared_ptr<Stream>& stream, const Event::Mark& mark) {
  if (const std::optional<CUresult> captured = WaitInCapture(*stream, mark)) return *captured;
  const bool is_virtual = VirtualDevice::Get() != nullptr;
  if (mark.Done() && !is_virtual) return CUDA_SUCCESS;
  std::unique_ptr<Operation> wait = std::make_unique<WaitOperation>(mark.moment);
  for (const Dependency& dependency : mark.dependencies) {
    if (dependency.stream != stream) wait->dependencies.push_back(dependency);
  }
  if (!wait->dependencies.empty() || is_virtual) stream->context()->Submit(stream, std::move(wait));
  return CUDA_SUCCESS;
}

}  // namespace softgpu
