// The launches that a thread has sent before: a program launches the same kernels in the same
// shapes again and again. For a known launch the client checks and encodes nothing but the
// parameters.
//
// A launch stays known until a handle that it may name ends, or until an attribute of a function
// changes: each of these forgets all launches of all threads.
//
// Thread safety: one thread; ForgetKnownLaunches from any thread.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "shim/known_launches_epoch.h"
#include "shim/known_message.h"

namespace shim {

struct Function;
struct Stream;

// A program's arguments of a launch, but for the parameters.
struct LaunchShape {
  CUfunction function = nullptr;
  CUstream stream = nullptr;
  unsigned grid[3] = {};
  unsigned block[3] = {};
  unsigned shared_bytes = 0;
  bool operator==(const LaunchShape&) const = default;
};

class KnownLaunches {
 public:
  // What the calling thread adds to a launch's arguments.
  struct Caller {
    uint64_t context = 0;     // the current one
    bool per_thread = false;  // stream 0 means the thread's own
    bool operator==(const Caller&) const = default;
  };
  struct Launch {
    LaunchShape shape;
    Caller caller;
    uint64_t epoch = 0;  // when the launch was checked
    const Function* function = nullptr;
    const Stream* stream = nullptr;
    KnownMessage message;
  };

  // Null: the thread has not sent it, or no longer knows it.
  Launch* Find(const LaunchShape& shape, const Caller& caller) {
    if (places_ == nullptr) return nullptr;
    Launch* const launch = &places_[PlaceOf(shape, caller)];
    const bool knows = launch->message && launch->epoch == KnownLaunchesEpoch() &&
                       launch->shape == shape && launch->caller == caller;
    return knows ? launch : nullptr;
  }
  // Where the launch is to be learned, in place of another one. `epoch` was read before the
  // launch was checked. `params` live until the launch is sent.
  Launch* Take(const LaunchShape& shape, const Caller& caller, uint64_t epoch,
               std::span<const std::byte> params) {
    if (places_ == nullptr) places_ = std::make_unique<Launch[]>(kPlaces);
    Launch* const launch = &places_[PlaceOf(shape, caller)];
    launch->message.Await(params);
    launch->shape = shape;
    launch->caller = caller;
    launch->epoch = epoch;
    return launch;
  }

 private:
  static constexpr int kPlacesBits = 8;
  static constexpr size_t kPlaces = size_t{1} << kPlacesBits;

  static size_t PlaceOf(const LaunchShape& shape, const Caller& caller) {
    const uint64_t sizes = shape.grid[0] + uint64_t{shape.grid[1]} * 0x9e3779b1 +
                           uint64_t{shape.grid[2]} * 0x85ebca6b +
                           uint64_t{shape.block[0]} * 0xc2b2ae35;
    const uint64_t names = reinterpret_cast<uint64_t>(shape.function) * 3 +
                           reinterpret_cast<uint64_t>(shape.stream) * 5 + caller.context;
    return static_cast<size_t>((names + sizes) * 0x9e3779b97f4a7c15 >> (64 - kPlacesBits));
  }

  std::unique_ptr<Launch[]> places_;  // null: the thread has launched nothing
};

}  // namespace shim
