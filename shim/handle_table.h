// The client's names for driver objects, and the opaque values that the program holds for them.
//
// A program's value is (kind | generation | index), never a pointer into the client's memory. A
// stale, foreign or invented value therefore gets the error that CUDA gives, and no memory is read
// through the value. The index is the object's name on the wire (ipc::HandleId), free for use
// again once destroyed.
//
// Thread safety: Find is lock-free; Create and Destroy take the table's lock. A destroyed object is
// kept until its name is destroyed once more, so a program that races destruction against use
// (undefined in CUDA, too) reads a stale object, not freed memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "ipc/calls/limits.h"
#include "ipc/handles.h"
#include "shim/known_launches_epoch.h"
#include "shim/lock_order.h"

namespace shim {

// The bits of a program's value.
inline constexpr unsigned kKindShift = 56;
inline constexpr unsigned kGenerationShift = 32;
inline constexpr uint32_t kGenerationMask = (1u << (kKindShift - kGenerationShift)) - 1;

constexpr ipc::HandleKind KindOf(uint64_t value) {
  const uint64_t kind = value >> kKindShift;
  return kind < static_cast<uint64_t>(ipc::HandleKind::kCount) ? static_cast<ipc::HandleKind>(kind)
                                                               : ipc::HandleKind::kNone;
}
constexpr uint32_t IndexOf(uint64_t value) { return static_cast<uint32_t>(value); }
// REQUIRES: value was given by a HandleTable.
constexpr ipc::HandleId NameOf(uint64_t value) {
  return static_cast<ipc::HandleId>(IndexOf(value) + static_cast<uint32_t>(ipc::HandleId::kFirst));
}

// A table as the codec sees it (ipc/caller.h), whatever it holds.
class Names {
 public:
  virtual ~Names() = default;
  virtual bool Has(uint64_t value) const = 0;
  // False when all names are taken.
  virtual bool Add(uint64_t* value) = 0;
  virtual void Forget(ipc::HandleId id) = 0;
};

// T is default-constructible; Create gives a fresh one.
template <class T, ipc::HandleKind kKind>
class HandleTable : public Names {
 public:
  static constexpr uint32_t kFirstName = static_cast<uint32_t>(ipc::HandleId::kFirst);

  explicit HandleTable(uint32_t capacity = ipc::NamesEnd(kKind) - kFirstName)
      : capacity_(capacity) {}
  HandleTable(const HandleTable&) = delete;
  ~HandleTable() override {
    for (std::atomic<Chunk*>& chunk : chunks_) delete chunk.load(std::memory_order_relaxed);
  }

  // Null when all names are taken.
  T* Create(uint64_t* value) {
    const base::MutexLock lock(&mutex_);
    uint32_t index = used_;
    if (!free_.empty()) {
      index = free_.back();
      free_.pop_back();
    } else if (used_ == capacity_) {
      return nullptr;
    } else {
      ++used_;
    }
    Entry* const entry = EntryAt(index);
    entry->object = std::make_unique<T>();
    const uint32_t generation = entry->generation.load(std::memory_order_relaxed) + 1;  // odd: live
    *value = ValueFor(index, generation);
    entry->current.store(entry->object.get(), std::memory_order_release);
    entry->generation.store(generation, std::memory_order_release);
    live_.fetch_add(1, std::memory_order_relaxed);
    return entry->object.get();
  }

  // The live object of a program's value; null when it has none.
  T* Find(uint64_t value) const {
    if (KindOf(value) != kKind) return nullptr;
    const uint32_t index = IndexOf(value);
    if (index >= capacity_) return nullptr;
    const Chunk* const chunk = chunks_[index / kChunk].load(std::memory_order_acquire);
    if (chunk == nullptr) return nullptr;
    const Entry& entry = chunk->entries[index % kChunk];
    const uint32_t generation = entry.generation.load(std::memory_order_acquire);
    const uint32_t wanted = static_cast<uint32_t>(value >> kGenerationShift) & kGenerationMask;
    if ((generation & 1) == 0 || (generation & kGenerationMask) != wanted) return nullptr;
    return entry.current.load(std::memory_order_acquire);
  }

  // False when the value names no live object.
  bool Destroy(uint64_t value) {
    const base::MutexLock lock(&mutex_);
    if (Find(value) == nullptr) return false;
    Entry* const entry = EntryAt(IndexOf(value));
    entry->generation.fetch_add(1, std::memory_order_release);
    // One object per name is kept, so that a racing reader of the last generation reads memory of
    // ours.
    entry->last = std::move(entry->object);
    free_.push_back(IndexOf(value));
    live_.fetch_sub(1, std::memory_order_relaxed);
    if constexpr (kLaunchesNameIt) ForgetKnownLaunches();
    return true;
  }

  bool Has(uint64_t value) const override { return Find(value) != nullptr; }
  bool Add(uint64_t* value) override { return Create(value) != nullptr; }
  void Forget(ipc::HandleId id) override { Destroy(ValueOf(id)); }

  // The program's value of the live object with this name; 0 when there is none.
  uint64_t ValueOf(ipc::HandleId id) const {
    const uint32_t index = static_cast<uint32_t>(id) - kFirstName;
    if (index >= capacity_) return 0;
    const Chunk* const chunk = chunks_[index / kChunk].load(std::memory_order_acquire);
    if (chunk == nullptr) return 0;
    const uint32_t generation =
        chunk->entries[index % kChunk].generation.load(std::memory_order_acquire);
    return (generation & 1) == 0 ? 0 : ValueFor(index, generation);
  }

  // Calls visit(T&), if there is such an object, while nobody destroys it.
  template <class Visit>
  void With(uint64_t value, Visit visit) const {
    const base::MutexLock lock(&mutex_);
    if (T* const object = Find(value); object != nullptr) visit(*object);
  }

  // Calls visit(value, T*) for every live object; those created meanwhile may be missed.
  template <class Visit>
  void ForEach(Visit visit) const {
    std::vector<uint64_t> values;
    {
      const base::MutexLock lock(&mutex_);
      for (uint32_t index = 0; index < used_; ++index) {
        const Entry& entry =
            chunks_[index / kChunk].load(std::memory_order_relaxed)->entries[index % kChunk];
        const uint32_t generation = entry.generation.load(std::memory_order_relaxed);
        if ((generation & 1) == 0) continue;
        values.push_back(ValueFor(index, generation));
      }
    }
    for (uint64_t value : values) {
      if (T* const object = Find(value); object != nullptr) visit(value, object);
    }
  }

  size_t live() const { return live_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    std::atomic<uint32_t> generation{0};
    std::atomic<T*> current{nullptr};
    std::unique_ptr<T> object;
    std::unique_ptr<T> last;
  };
  static constexpr uint32_t kChunk = 1024;
  static constexpr bool kLaunchesNameIt =
      kKind == ipc::HandleKind::kContext || kKind == ipc::HandleKind::kStream ||
      kKind == ipc::HandleKind::kFunction || kKind == ipc::HandleKind::kKernel;
  struct Chunk {
    Entry entries[kChunk];
  };

  static uint64_t ValueFor(uint32_t index, uint32_t generation) {
    return uint64_t{static_cast<uint8_t>(kKind)} << kKindShift |
           uint64_t{generation & kGenerationMask} << kGenerationShift | index;
  }

  Entry* EntryAt(uint32_t index) REQUIRES(mutex_) {
    std::atomic<Chunk*>& chunk = chunks_[index / kChunk];
    if (chunk.load(std::memory_order_relaxed) == nullptr) {
      chunk.store(new Chunk, std::memory_order_release);
    }
    return &chunk.load(std::memory_order_relaxed)->entries[index % kChunk];
  }

  const uint32_t capacity_;
  std::atomic<Chunk*> chunks_[ipc::limits::kHandlesMax / kChunk] = {};
  mutable base::Mutex mutex_ ACQUIRED_AFTER(lock_order::kKeeping);  // of the entries' objects, too
  std::vector<uint32_t> free_ GUARDED_BY(mutex_);
  uint32_t used_ GUARDED_BY(mutex_) = 0;
  std::atomic<size_t> live_{0};
};

}  // namespace shim
