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

class KnownLaunches {
 public:
  // The program's arguments but for the parameters, and what the calling thread adds to them.
  struct Key {
    uint64_t context = 0;  // the current one
    CUfunction function = nullptr;
    CUstream stream = nullptr;
    unsigned grid[3] = {};
    unsigned block[3] = {};
    unsigned shared_bytes = 0;
    bool per_thread = false;  // stream 0 means the thread's own
    bool operator==(const Key&) const = default;
  };
  struct Launch {
    Key key;
    uint64_t epoch = 0;  // when the launch was checked
    const Function* function = nullptr;
    const Stream* stream = nullptr;
    KnownMessage message;
  };

  // Null: the thread has not sent it, or no longer knows it.
  Launch* Find(const Key& key) {
    if (places_ == nullptr) return nullptr;
    Launch* const launch = &places_[PlaceOf(key)];
    return launch->message && launch->epoch == KnownLaunchesEpoch() && launch->key == key ? launch
                                                                                          : nullptr;
  }
  // Where the launch is to be learned, in place of another one. `epoch` was read before the
  // launch was checked. `params` live until the launch is sent.
  Launch* Take(const Key& key, uint64_t epoch, std::span<const std::byte> params) {
    if (places_ == nullptr) places_ = std::make_unique<Launch[]>(kPlaces);
    Launch* const launch = &places_[PlaceOf(key)];
    launch->message.Await(params);
    launch->key = key;
    launch->epoch = epoch;
    return launch;
  }

 private:
  static constexpr int kPlacesBits = 8;
  static constexpr size_t kPlaces = size_t{1} << kPlacesBits;

  static size_t PlaceOf(const Key& key) {
    const uint64_t shape = key.grid[0] + uint64_t{key.grid[1]} * 0x9e3779b1 +
                           uint64_t{key.grid[2]} * 0x85ebca6b + uint64_t{key.block[0]} * 0xc2b2ae35;
    const uint64_t names = reinterpret_cast<uint64_t>(key.function) * 3 +
                           reinterpret_cast<uint64_t>(key.stream) * 5 + key.context;
    return static_cast<size_t>((names + shape) * 0x9e3779b97f4a7c15 >> (64 - kPlacesBits));
  }

  std::unique_ptr<Launch[]> places_;  // null: the thread has launched nothing
};

}  // namespace shim
