// The recent past of a process's device work, as the detector sees it: one token per operation, in
// a ring, with rolling hashes, so that any two stretches are compared in constant time.
//
// Positions count operations from 0 and never wrap; the last kSize of them can be read.
// Thread safety: none; std only, no clock.
#pragma once

#include <cstdint>
#include <memory>

namespace shim::iterations {

// One operation that the program asks of the device. No addresses: they differ in every run.
struct Op {
  uint32_t identity = 0;    // what is done: the call, the kernel; a well mixed hash
  uint32_t shape = 0;       // how much: grid, sizes; a hash
  bool computes = false;    // a launch or library call, not a copy or fill
  bool synced = false;      // the host has waited for the device since the operation before
  uint64_t live_bytes = 0;  // device memory that the program holds now
};

class History {
 public:
  static constexpr uint64_t kSize = 1u << 16;

  History();

  // Inline, as is all that each operation of a known body passes.
  void Push(const Op& op) {
    hash_ = Extend(hash_, op.identity);
    Entry& entry = ring_[size_ & (kSize - 1)];
    entry.hash = hash_;
    entry.live_bytes = op.live_bytes;
    entry.identity = op.identity;
    entry.shape = op.shape;
    entry.flags = (op.synced ? kSynced : 0) | (op.computes ? kComputes : 0);
    ++size_;
  }
  uint64_t size() const { return size_; }
  // The first position that can still be read.
  uint64_t first() const { return size_ > kSize ? size_ - kSize : 0; }

  // REQUIRES below: first() <= position < size().
  uint32_t identity(uint64_t position) const { return At(position).identity; }
  uint32_t shape(uint64_t position) const { return At(position).shape; }
  uint64_t live_bytes(uint64_t position) const { return At(position).live_bytes; }
  bool synced(uint64_t position) const { return (At(position).flags & kSynced) != 0; }
  bool computes(uint64_t position) const { return (At(position).flags & kComputes) != 0; }

  // Of the identities in [begin, begin + count); REQUIRES: all of them can be read, and begin >
  // first() unless begin is 0.
  uint64_t Hash(uint64_t begin, uint64_t count) const;
  // How many operations before `end` equal those `period` before them, at most `count`.
  uint64_t EqualBefore(uint64_t end, uint64_t period, uint64_t count) const;

  // One more token behind a hash: prefix hashes of bodies are made the same way.
  static uint64_t Extend(uint64_t hash, uint32_t identity) { return hash * kFactor + identity + 1; }

 private:
  static constexpr uint64_t kFactor = 0x9e3779b97f4a7c15;
  static constexpr uint32_t kSynced = 1, kComputes = 2;

  struct Entry {
    uint64_t hash;  // of everything up to and including this one
    uint64_t live_bytes;
    uint32_t identity;
    uint32_t shape;
    uint32_t flags;
  };

  const Entry& At(uint64_t position) const { return ring_[position & (kSize - 1)]; }

  std::unique_ptr<Entry[]> ring_;  // not touched before it is used
  uint64_t size_ = 0;
  uint64_t hash_ = 0;
};

}  // namespace shim::iterations
