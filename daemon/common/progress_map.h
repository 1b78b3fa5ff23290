// How far a session is (ipc::Progress), in the first page of its swap file (swap_file.h): the
// worker writes it, lanewayd reads it, and no client has the file. What lanewayd charges a session
// for rests on it. Like the file it outlives workers and daemons. Thread safety: the words are
// atomics; the object itself belongs to one thread.
#pragma once

#include <memory>
#include <utility>

#include "ipc/session_file.h"

namespace common {

class ProgressMap {
 public:
  // Counts for itself alone: without a file, and when the file can't be mapped.
  ProgressMap() = default;
  explicit ProgressMap(int swap_fd);  // does not take over the descriptor
  ProgressMap(ProgressMap&& other) noexcept { Swap(&other); }
  ProgressMap& operator=(ProgressMap&& other) noexcept {
    Swap(&other);
    return *this;
  }
  ~ProgressMap();

  bool shared() const { return mapped_ != nullptr; }
  ipc::Progress* get() const { return mapped_ != nullptr ? mapped_ : own_.get(); }

 private:
  void Swap(ProgressMap* other) {
    std::swap(mapped_, other->mapped_);
    std::swap(own_, other->own_);
  }

  ipc::Progress* mapped_ = nullptr;
  std::unique_ptr<ipc::Progress> own_ = std::make_unique<ipc::Progress>();
};

}  // namespace common
