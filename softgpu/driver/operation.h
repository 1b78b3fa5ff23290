// One piece of work in a stream.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "scheduler/streams/timeline.h"

namespace softgpu {

class Stream;

// "Everything up to `sequence` in `stream`".
struct Dependency {
  std::shared_ptr<Stream> stream;
  uint64_t sequence = 0;
};

class Operation {
 public:
  // Where Run may happen: on any thread that waits for the stream; even on the one that submits it
  // (it takes less than calling a thread does); or on the stream's own thread only (work that
  // blocks or calls the application).
  enum class Place { kAnywhere, kSubmitter, kStreamThread };

  explicit Operation(Place place = Place::kAnywhere) : place_(place) {}
  virtual ~Operation() = default;

  // Anything but CUDA_SUCCESS is a device fault that the operation has reported in words already.
  virtual CUresult Run() = 0;
  // Called instead of Run after a fault.
  virtual void Skip(CUresult fault) {}

  // The stream that it is about to run in; only prints and the words of faults care.
  virtual void SetStream(CUstream stream) {}

  // Enters the operation into virtual time, behind `after`; returns the moment of its end. Called
  // once, where the operation is submitted, and only when there is virtual time
  // (virtual_device.h). By default, it takes the time of `timed`.
  virtual scheduler::streams::Timeline::Moment Enter(
      scheduler::streams::Timeline* timeline, const scheduler::streams::Timeline::Moment& after) {
    const bool takes_time = timed.kind != scheduler::streams::TimedWork::Kind::kNone;
    return takes_time ? timeline->Add(timed, after) : after;
  }

  Place place() const { return place_; }
  std::vector<Dependency> dependencies;  // what Run waits for besides the stream's own order
  scheduler::streams::TimedWork timed;   // what it takes in virtual time

 private:
  const Place place_;
};

template <class Function>
class FunctionOperation final : public Operation {
 public:
  explicit FunctionOperation(Function function) : function_(std::move(function)) {}
  CUresult Run() override { return function_(); }

 private:
  Function function_;
};

template <class Function>
std::unique_ptr<Operation> MakeOperation(Function function) {
  return std::make_unique<FunctionOperation<Function>>(std::move(function));
}

}  // namespace softgpu
