// The operations of an iteration as data: what a program asked of the device, in its order, with
// every argument. Times are not recorded.
//
// An operation is its callee, its CUDA stream, the bytes of its arguments, and a bit: whether the
// host had waited for the device since the operation before. Bounded by limits::kRecorded*.
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "replay/callees.h"

namespace replay {

// What tells operations apart, whatever their arguments are.
struct OpKey {
  uint32_t callee = 0;  // in the job's Callees
  uint32_t stream = 0;  // by the client's name
  bool waited = false;  // the host has waited for the device since the operation before
  bool operator==(const OpKey&) const = default;
};

// One operation; its arguments lie elsewhere.
struct OpView {
  OpKey key;
  std::span<const std::byte> arguments;
};

class OpStream {
 public:
  // False, and nothing is added: the stream is full. REQUIRES: as many bytes as the callee says.
  bool Add(const OpView& op);
  // A copy of [begin, end).
  OpStream Slice(size_t begin, size_t end) const;
  void Clear();

  size_t size() const { return ops_.size(); }
  size_t argument_bytes() const { return arguments_.size(); }
  // REQUIRES below: i < size(). A view is valid until the stream changes.
  OpView at(size_t i) const { return {ops_[i].key, Arguments(i)}; }
  const OpKey& key(size_t i) const { return ops_[i].key; }
  std::span<std::byte> MutableArguments(size_t i) {
    return std::span(arguments_).subspan(ops_[i].begin, Bytes(i));
  }

  bool operator==(const OpStream&) const = default;

 private:
  struct Op {
    OpKey key;
    uint32_t begin = 0;  // of its arguments, which end where those of the next begin
    bool operator==(const Op&) const = default;
  };

  size_t Bytes(size_t i) const {
    return (i + 1 < ops_.size() ? ops_[i + 1].begin : arguments_.size()) - ops_[i].begin;
  }
  std::span<const std::byte> Arguments(size_t i) const {
    return std::span(arguments_).subspan(ops_[i].begin, Bytes(i));
  }

  std::vector<Op> ops_;
  std::vector<std::byte> arguments_;
};

}  // namespace replay
