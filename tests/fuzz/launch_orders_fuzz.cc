// Orders of launches, as a hostile client may send them (daemon/worker/launch_orders.h). The input
// is the chunk area, then words of 32 bits: place and bytes of the order, how many words each of
// its first three arrays has, and these arrays; then how many the renames have, the bytes of the
// order's part of the scratch memory, and the renames. What follows is repeated at the place.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "daemon/worker/launch_orders.h"
#include "ipc/calls.h"
#include "ipc/message.h"

namespace {

constexpr size_t kAreaBytes = 512;

class Words {
 public:
  explicit Words(std::span<const std::byte> bytes) : words_(bytes.size() / 4) {
    if (!words_.empty()) std::memcpy(words_.data(), bytes.data(), 4 * words_.size());
  }
  uint32_t Next() { return at_ < words_.size() ? words_[at_++] : 0; }
  std::span<const uint32_t> Next(uint32_t count) {
    count = static_cast<uint32_t>(std::min<size_t>(count, words_.size() - at_));
    at_ += count;
    return std::span(words_).subspan(at_ - count, count);
  }
  std::span<const std::byte> Rest() const { return std::as_bytes(std::span(words_).subspan(at_)); }

 private:
  std::vector<uint32_t> words_;
  size_t at_ = 0;
};

unsigned Count(std::span<const uint32_t> words) { return static_cast<unsigned>(words.size()); }

// The worker relies on this: what an order holds for are whole launches.
void CheckLaunches(std::span<const std::byte> messages, size_t bytes) {
  size_t at = 0;
  while (at < bytes) {
    const ipc::MessageHeader header = ipc::HeaderAt(messages, at);
    if (header.op != static_cast<uint16_t>(ipc::Op::Launch)) std::abort();
    at += ipc::PaddedBytes(header.bytes);
  }
  if (at != bytes) std::abort();
}

// And on this: each renamed parameter is of a launch, and has an address in the scratch memory.
void CheckRenames(const worker::LaunchOrders::Order& order) {
  for (const worker::RenamedParameter& rename : order.renames) {
    if (rename.address >= ipc::limits::kRenameBytesMax || rename.launch >= order.messages.size())
      std::abort();
  }
}

class NoScratch final : public worker::ScratchMemory {
  CUdeviceptr Take() override { return 0; }
  void GiveBack() override {}
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < kAreaBytes) return 0;
  const std::span<const std::byte> input = std::as_bytes(std::span(data, size));
  NoScratch scratch;
  worker::LaunchOrders orders(input.first(kAreaBytes), &scratch);
  Words words(input.subspan(kAreaBytes));
  const uint32_t place = words.Next(), bytes = words.Next();
  const uint32_t edge_count = words.Next(), read_count = words.Next(), patch_count = words.Next();
  const std::span<const uint32_t> edges = words.Next(edge_count), read = words.Next(read_count),
                                  patches = words.Next(patch_count);
  const uint32_t rename_count = words.Next(), rename_bytes = words.Next();
  const std::span<const uint32_t> renames = words.Next(rename_count);
  orders.OrderRenamedLaunches(place, bytes, edges.data(), Count(edges), read.data(), Count(read),
                              patches.data(), Count(patches), renames.data(), Count(renames),
                              rename_bytes);
  const worker::LaunchOrders::Order* const order = orders.Find(place, words.Rest());
  if (order == nullptr) return 0;
  CheckLaunches(words.Rest(), order->messages.size());
  CheckRenames(*order);
  return 0;
}
