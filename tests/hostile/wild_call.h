// One call of any row, made from the row's roles alone: names that exist or not, addresses of the
// session's own memory, of neighbours' and of no session's, sizes of 0, too large and negative,
// and, rarely, a body of a wrong length. Unlike RandomCall (tests/ipc/calls), which makes
// what a program could pass, it makes what only a hostile client sends.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "ipc/codec.h"
#include "ipc/roles.h"

namespace hostile {

// Memory and names of a session, for calls that hit something.
struct Target {
  uint64_t base = 0;    // of its slot
  uint64_t mapped = 0;  // bytes of the arena that are backed, from the base on
  uint64_t lane_mapped = 0;
  uint64_t pinned_mapped = 0;
  uint32_t names = 0;  // of each kind, from the first on
};

class WildCall {
 public:
  WildCall(ipc::Op op, const Target& target, std::mt19937_64* random);

  // The encoded parameters.
  std::vector<std::byte> Body();

 private:
  bool IsLength(size_t i) const;
  bool IsCarried(size_t i) const;  // a length of what the body carries
  void MakeValue(size_t i);
  uint64_t Size();
  uint64_t Address();
  uint32_t Name();
  void PutFixed(size_t i);
  void PutRange(size_t i);
  void PutMark(size_t i);
  ipc::Values values() const { return pointers_.data(); }
  uint64_t Below(uint64_t end) { return random_() % end; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  template <class T>
  void Put(const T& value) {
    const std::byte* const from = reinterpret_cast<const std::byte*>(&value);
    body_.insert(body_.end(), from, from + sizeof value);
  }
  void PutNoise(size_t count);
  void PutObject(size_t bytes);

  const Target& target_;
  const std::span<const ipc::Param> params_;
  std::mt19937_64& random_;
  std::array<std::array<std::byte, ipc::kValueBytesMax>, ipc::kParamsMax> slots_ = {};
  std::array<const void*, ipc::kParamsMax> pointers_ = {};
  uint32_t present_ = 0;
  uint64_t scalars_ = 0;  // an ipc::ScalarTag
  std::vector<std::byte> body_;
};

}  // namespace hostile
