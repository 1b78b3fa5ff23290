// A chunk area and messages that repeat runs in it, as a hostile client may write them. The input
// is the area's first bytes, then messages, each behind its length.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <utility>

#include "ipc/chunks/chunk_receiver.h"

namespace {

constexpr size_t kAreaBytes = 512;

class Messages final : public ipc::Receiver {
 public:
  explicit Messages(std::span<const std::byte> bytes) : rest_(bytes) {}
  std::span<const std::byte> NextUntrusted(int64_t, int64_t) override {
    const std::span<const std::byte> message = PeekUntrusted(0, 0);
    if (!message.empty()) rest_ = rest_.subspan(1 + message.size());
    return message;
  }
  // A ring hands out no message that is shorter than a header.
  std::span<const std::byte> PeekUntrusted(int64_t, int64_t) override {
    if (rest_.empty()) return {};
    const size_t bytes = static_cast<size_t>(rest_[0]) + sizeof(ipc::MessageHeader);
    return bytes < rest_.size() ? rest_.subspan(1, bytes) : std::span<const std::byte>();
  }
  bool Pending() override { return !PeekUntrusted(0, 0).empty(); }
  bool broken() const override { return false; }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < kAreaBytes) return 0;
  const std::span<const std::byte> input = std::as_bytes(std::span(data, size));
  ipc::ChunkReceiver receiver(std::make_unique<Messages>(input.subspan(kAreaBytes)),
                              input.first(kAreaBytes));
  uint64_t sum = 0;
  for (;;) {
    const std::span<const std::byte> message = receiver.NextUntrusted(0, 0);
    if (message.empty()) break;
    if (message.size() < sizeof(ipc::MessageHeader)) std::abort();
    for (const std::byte byte : message) sum += static_cast<uint64_t>(byte);
  }
  if (receiver.midway() != nullptr && !receiver.broken()) std::abort();
  volatile uint64_t sink = sum;
  (void)sink;
  return 0;
}
