// One call of any row with random arguments that a program could pass, made from the row's roles
// alone.
#pragma once

#include <deque>
#include <random>
#include <vector>

#include "ipc/accepts_operands.h"
#include "ipc/calls.h"
#include "ipc/codec_client.h"
#include "ipc/codec_worker.h"
#include "ipc/roles.h"
#include "tests/ipc/calls/fakes.h"

namespace ipc {

class RandomCall {
 public:
  RandomCall(Op op, std::mt19937_64& random, bool scalars_on_device);

  Values values() const { return pointers_.data(); }

  // Called in place of the driver: compares each decoded argument with what the program passed, and
  // fills what the call returns.
  void Serve(const Slot* slots);
  // Compares what arrived in the program's variables with what Serve filled in.
  void CheckReply() const;

 private:
  struct Buffer {
    size_t param;
    std::vector<std::byte> bytes;   // the program's memory
    std::vector<std::byte> filled;  // what Serve wrote there
  };

  bool IsLength(size_t i) const;
  bool Null(const Param& param);  // whether to pass a null pointer this time
  void MakeValue(size_t i);
  void MakeArgument(size_t i);
  void PointAtBuffer(size_t i, size_t bytes);
  size_t BytesBehind(size_t i) const;
  void CompareSent(size_t i, const void* got) const;
  void SetPointer(size_t i, const void* pointer) { std::memcpy(arguments_[i].bytes, &pointer, 8); }
  void* Pointer(size_t i) const { return arguments_[i].As<void*>(); }
  uint64_t Below(uint64_t end) { return random_() % end; }

  bool IsExtent(size_t i) const;
  bool IsType(size_t i) const;

  const bool own_;  // one of Laneway's own calls
  const blas::Family* const family_;
  const std::span<const Param> params_;
  std::mt19937_64& random_;
  const bool scalars_on_device_;
  std::array<Slot, kParamsMax> arguments_ = {};
  std::array<const void*, kParamsMax> pointers_ = {};
  std::deque<Buffer> buffers_;
};

}  // namespace ipc
