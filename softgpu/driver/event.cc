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

namespace softgpu {
namespace {

class RecordOperation final : public Operation {
 public:
  explicit RecordOperation(std::shared_ptr<Event::Mark> mark)
      : Operation(Place::kSubmitter), mark_(std::move(mark)) {}
  CUresult Run() override {
    mark_->at_ns = Event::NowNs();
    return CUDA_SUCCESS;
  }
  void Skip(CUresult) override { mark_->at_ns = Event::NowNs(); }

 private:
  const std::shared_ptr<Event::Mark> mark_;
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
  return result;
}

CUresult Event::Elapsed(const Event& start, const Event& end, float* milliseconds) {
  if (!start.timed() || !end.timed()) return CUDA_ERROR_INVALID_HANDLE;
  const std::shared_ptr<Mark> first = start.mark(), last = end.mark();
  if (first == nullptr || last == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!first->Done() || !last->Done()) return CUDA_ERROR_NOT_READY;
  *milliseconds = static_cast<float>(static_cast<double>(last->at_ns - first->at_ns) / 1e6);
  return CUDA_SUCCESS;
}

CUresult WaitForMark(const std::shared_ptr<Stream>& stream, const Event::Mark& mark) {
  if (const std::optional<CUresult> captured = WaitInCapture(*stream, mark)) return *captured;
  if (mark.Done()) return CUDA_SUCCESS;
  std::unique_ptr<Operation> wait = MakeOperation([] { return CUDA_SUCCESS; });
  for (const Dependency& dependency : mark.dependencies) {
    if (dependency.stream != stream) wait->dependencies.push_back(dependency);
  }
  if (!wait->dependencies.empty()) stream->context()->Submit(stream, std::move(wait));
  return CUDA_SUCCESS;
}

}  // namespace softgpu
