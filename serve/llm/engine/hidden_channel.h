// The way of hidden states from one stage of an engine to the next: memory that both processes
// share, and a socket by which they say what is there (SOCK_SEQPACKET, from the front). The front
// has no part in it: control and data are apart (Orca, section 4.3.1).
//
//     stage i                 stage i + 1
//     Offer, the memory  ->                  at the start
//                        <-   Width          when its own matrices are loaded
//     Passed             ->                  a plan's rows lie in its slot
//                        <-   Released       they are not needed any more
//
// Plans are passed in order. A plan's slot is its number modulo kHiddenSlots: while the next stage
// computes one plan, this one writes the following.
//
// Every wait ends: with what is waited for, or because the other process has ended, which is
// kCancelled. Then the front, which has seen that end, ends this process, too. Thread safety: the
// engine's thread alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "serve/engine/gemm_width.h"
#include "serve/loop/descriptor.h"

namespace serve::llm {

constexpr uint64_t kHiddenSlots = 2;

struct HiddenShape {
  uint64_t rows_max = 0;
  uint64_t width = 0;  // elements of a row

  size_t SlotElements() const { return rows_max * width; }
  size_t Bytes() const { return kHiddenSlots * SlotElements() * sizeof(float); }
};

// Memory that two processes have, unmapped with the object.
class SharedFloats {
 public:
  SharedFloats() = default;
  // REQUIRES: the file has so many bytes, and never fewer.
  static absl::StatusOr<SharedFloats> Map(int file, size_t bytes);
  SharedFloats(SharedFloats&& other) noexcept;
  SharedFloats& operator=(SharedFloats&& other) noexcept;
  SharedFloats(const SharedFloats&) = delete;
  ~SharedFloats();

  std::span<float> floats() const { return floats_; }

 private:
  std::span<float> floats_;
};

// The end at the stage that computes first.
class HiddenSender {
 public:
  // Offers the memory.
  static absl::StatusOr<HiddenSender> Open(Descriptor socket, const HiddenShape& shape);

  // Waits until the next stage has told it.
  absl::StatusOr<engine::GemmWidth> ReceiveWidth();
  // Where the plan's rows go: waits until the slot is free. REQUIRES: plans rise by one.
  absl::StatusOr<float*> WaitForSlot(uint64_t plan);
  absl::Status Pass(uint64_t plan);
  // To be pinned.
  std::span<float> memory() const { return memory_.floats(); }

 private:
  HiddenSender(Descriptor socket, const HiddenShape& shape, SharedFloats memory);

  Descriptor socket_;
  HiddenShape shape_;
  SharedFloats memory_;
  uint64_t passed_ = 0;  // plans
  uint64_t released_ = 0;
};

class HiddenReceiver {
 public:
  // Waits for the offer, which must be of this shape.
  static absl::StatusOr<HiddenReceiver> Open(Descriptor socket, const HiddenShape& shape);

  absl::Status SendWidth(const engine::GemmWidth& width);
  // Waits until the plan's rows are there, and tells where. REQUIRES: Release of the one before.
  absl::StatusOr<const float*> WaitForRows(uint64_t plan);
  absl::Status Release(uint64_t plan);
  std::span<float> memory() const { return memory_.floats(); }

 private:
  HiddenReceiver(Descriptor socket, const HiddenShape& shape, SharedFloats memory);

  Descriptor socket_;
  HiddenShape shape_;
  SharedFloats memory_;
};

}  // namespace serve::llm
