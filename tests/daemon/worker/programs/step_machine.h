// The steps of random programs for tests of replay, and a machine that does the steps one by one on
// a CellDevice, as a worker without replay does. Thread safety: one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tests/daemon/worker/programs/cell_device.h"

namespace worker {

constexpr uint32_t kBuffers = 6, kBufferCells = kCells / kBuffers;
constexpr uint32_t kStreams = 3, kEvents = 4, kThreads = 3, kFunctions = 6;  // names of each

struct Step {
  enum class Kind : uint32_t {
    kLaunch,
    kFill,
    kCopy,
    kRecord,
    kWait,
    kFree,
    kAllocate,
    kNewStream,    // the name stands for another stream from now on
    kNewFunction,  // the name stands for another function from now on: that of number `value`
    kFinish,
  };
  Kind kind = Kind::kLaunch;
  uint32_t thread = 0;
  uint32_t stream = 0;
  uint32_t event = 0;
  uint32_t function = 0;
  uint32_t count = 1;
  uint32_t more = 0;  // words that follow the step, as further arguments
  uint32_t unused = 0;
  uint64_t to = 0;  // the arguments of kernels begin here
  uint64_t from = 0;
  uint32_t value = 0, unused_too = 0;

  bool IsWork() const { return kind <= Kind::kCopy; }
  uint32_t buffer() const { return static_cast<uint32_t>(to) / kBufferCells; }
};
constexpr size_t kStepWords = sizeof(Step) / sizeof(uint32_t);

// A step's message without its header: the step, and the words that follow.
std::vector<std::byte> BytesOf(const Step& step);
Step StepAt(std::span<const std::byte> body);

class StepMachine {
 public:
  explicit StepMachine(uint64_t seed);

  // REQUIRES: a kernel touches memory that is there.
  void Do(std::span<const std::byte> body);
  // The device's work for the step. REQUIRES: the step is a launch, a fill or a copy.
  Work WorkOf(const Step& step, std::span<const std::byte> body) const;
  uint32_t stream(uint32_t name) const { return streams_[name]; }
  uint32_t function(uint32_t name) const { return functions_[name]; }

  CellDevice& device() { return device_; }
  // Values of the fills and copies that were refused, in their order.
  const std::vector<uint32_t>& refused() const { return refused_; }

 private:
  struct Event {
    uint32_t stream = 0;
    uint64_t end = 0;
  };
  bool AreThere(const Step& step) const;
  void SetThere(const Step& step, bool there);

  CellDevice device_;
  std::array<uint32_t, kStreams> streams_;
  std::array<uint32_t, kFunctions> functions_;
  std::array<std::optional<Event>, kEvents> events_;
  std::array<bool, kBuffers> there_;
  std::vector<uint32_t> refused_;
};

// The numbers of functions that names stand for at first.
constexpr uint32_t FirstFunction(uint32_t name) {
  return kEffects * name + kFirstOfKernels + name % (kEffects - kFirstOfKernels);
}
constexpr uint32_t kAnewName = 4;
static_assert(EffectOf(FirstFunction(kAnewName)) == Effect::kAnew);

}  // namespace worker
