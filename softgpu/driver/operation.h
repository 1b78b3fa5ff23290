// One piece of work in a stream.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

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

  Place place() const { return place_; }
  std::vector<Dependency> dependencies;  // what Run waits for besides the stream's own order

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
