// Which session a driver's stream belongs to: the driver names a stream with the text of a device
// printf, and with a fault. Thread safety: all methods from any thread, SessionInSignal() from a
// signal handler, too; With() keeps the owner alive while it runs.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "ipc/calls/vendor.h"

namespace worker {

class StreamOwner {
 public:
  virtual ~StreamOwner() = default;
  virtual uint64_t session_id() const = 0;
  // Takes text that a kernel of this session printed. Any thread.
  virtual void Print(std::string_view text) = 0;
};

class StreamOwners {
 public:
  void Add(CUstream stream, StreamOwner* owner) {
    const base::MutexLock lock(&mutex_);
    owners_[stream] = owner;
    Note(stream, owner->session_id());
  }
  // The owner ends, and all its streams are forgotten. A destroyed stream keeps its owner until
  // then, for the stream's last work may still print. When the driver gives the handle to a new
  // stream, Add() replaces the owner.
  void RemoveAll(const StreamOwner* owner) {
    const base::MutexLock lock(&mutex_);
    absl::erase_if(owners_, [owner](const auto& entry) { return entry.second == owner; });
    for (Noted& noted : noted_) {
      if (noted.session_id.load() == owner->session_id()) noted.stream.store(nullptr);
    }
  }
  // Hands text printed on the stream to its session; false when it has none.
  bool Print(CUstream stream, std::string_view text) {
    const base::MutexLock lock(&mutex_);
    const auto it = owners_.find(stream);
    if (it != owners_.end()) it->second->Print(text);
    return it != owners_.end();
  }
  // 0: no session's.
  uint64_t SessionOf(CUstream stream) {
    const base::MutexLock lock(&mutex_);
    const auto it = owners_.find(stream);
    return it == owners_.end() ? 0 : it->second->session_id();
  }
  // The same without a lock, for a thread that dies; also 0 of streams beyond the first few
  // thousand.
  uint64_t SessionInSignal(CUstream stream) const {
    for (const Noted& noted : noted_) {
      if (noted.stream.load() == stream) return noted.session_id.load();
    }
    return 0;
  }

 private:
  static constexpr size_t kNotedMax = 4096;
  struct Noted {
    std::atomic<CUstream> stream{nullptr};
    std::atomic<uint64_t> session_id{0};
  };

  void Note(CUstream stream, uint64_t session_id) REQUIRES(mutex_) {
    Noted* place = nullptr;
    for (Noted& noted : noted_) {
      const CUstream there = noted.stream.load();
      if (there != stream && (there != nullptr || place != nullptr)) continue;
      place = &noted;
      if (there == stream) break;
    }
    if (place == nullptr) return;
    place->session_id.store(session_id);
    place->stream.store(stream);
  }

  std::array<Noted, kNotedMax> noted_;
  base::Mutex mutex_;
  absl::flat_hash_map<CUstream, StreamOwner*> owners_ GUARDED_BY(mutex_);
};

}  // namespace worker
