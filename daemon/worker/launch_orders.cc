#include "daemon/worker/launch_orders.h"

#include <cstring>
#include <utility>

#include "ipc/calls.h"
#include "ipc/calls/limits.h"
#include "ipc/message.h"

namespace worker {
namespace {

constexpr size_t kWordBytes = 4;
constexpr size_t kOrdersMax = 4096;

void SetBit(size_t bit, std::vector<uint32_t>* bits) { (*bits)[bit / 32] |= 1u << (bit % 32); }

// How many launches of one context the order's bytes are; 0: they are something else. Their headers
// count as read, so messages for which the order holds have the same borders.
uint32_t NoteLaunchesUntrusted(LaunchOrders::Order* order) {
  const std::span<const std::byte> messages = order->messages;
  uint32_t launches = 0;
  for (size_t at = 0; at < messages.size(); ++launches) {
    if (messages.size() - at < sizeof(ipc::MessageHeader)) return 0;
    const ipc::MessageHeader header = ipc::HeaderAt(messages, at);
    if (header.op != static_cast<uint16_t>(ipc::Op::Launch) || header.bytes < sizeof header ||
        ipc::PaddedBytes(header.bytes) > messages.size() - at ||
        header.context != ipc::HeaderAt(messages, 0).context)
      return 0;
    for (size_t byte = at; byte < at + sizeof header; byte += kWordBytes)
      SetBit(byte / kWordBytes, &order->read);
    at += ipc::PaddedBytes(header.bytes);
  }
  return launches;
}

size_t BytesOf(const LaunchOrders::Order& order) {
  return order.messages.size() + kWordBytes * (order.read.size() + order.edges.size());
}

// Each edge leads to a later launch, so the edges make no circle.
bool AreEdgesUntrusted(std::span<const uint32_t> edges, uint32_t launches) {
  if (edges.size() % 2 != 0) return false;
  for (size_t i = 0; i < edges.size(); i += 2) {
    if (edges[i] >= edges[i + 1] || edges[i + 1] >= launches) return false;
  }
  return true;
}

bool PatchUntrusted(std::span<const uint32_t> patches, std::span<std::byte> messages) {
  if (patches.size() % 2 != 0) return false;
  for (size_t i = 0; i < patches.size(); i += 2) {
    if (patches[i] >= messages.size() / kWordBytes) return false;
    std::memcpy(messages.data() + patches[i] * kWordBytes, &patches[i + 1], kWordBytes);
  }
  return true;
}

}  // namespace

CUresult LaunchOrders::OrderLaunches(unsigned place, unsigned bytes, const uint32_t* edges,
                                     unsigned edge_words, const uint32_t* read, unsigned read_words,
                                     const uint32_t* patches, unsigned patch_words) {
  if (place % 8 != 0 || bytes % 8 != 0 || bytes == 0 || bytes > ipc::limits::kChunkBytesMax ||
      place > area_untrusted_.size() || bytes > area_untrusted_.size() - place ||
      read_words != (bytes / kWordBytes + 31) / 32)
    return CUDA_ERROR_INVALID_VALUE;
  Order order;
  order.messages.assign(area_untrusted_.begin() + place, area_untrusted_.begin() + place + bytes);
  order.read.assign(read, read + read_words);
  order.edges.assign(edges, edges + edge_words);
  if (!PatchUntrusted({patches, patch_words}, order.messages)) return CUDA_ERROR_INVALID_VALUE;
  const uint32_t launches = NoteLaunchesUntrusted(&order);
  if (launches == 0 || !AreEdgesUntrusted(order.edges, launches)) return CUDA_ERROR_INVALID_VALUE;
  if (const auto before = orders_.find(place); before != orders_.end()) {
    bytes_ -= BytesOf(before->second);
    orders_.erase(before);
  }
  const size_t bytes_more = BytesOf(order);
  if (orders_.size() >= kOrdersMax || bytes_more > kBytesMax - bytes_) return CUDA_SUCCESS;
  bytes_ += bytes_more;
  order.id = ++last_id_;
  orders_[place] = std::move(order);
  return CUDA_SUCCESS;
}

CUresult LaunchOrders::ForgetOrders() {
  orders_.clear();
  bytes_ = 0;
  return CUDA_SUCCESS;
}

const LaunchOrders::Order* LaunchOrders::Find(uint32_t place,
                                              std::span<const std::byte> messages) const {
  const auto found = orders_.find(place);
  if (found == orders_.end()) return nullptr;
  const Order& order = found->second;
  if (messages.size() < order.messages.size()) return nullptr;
  for (size_t at = 0; at < order.messages.size(); at += 8) {
    if (std::memcmp(&order.messages[at], &messages[at], 8) == 0) continue;
    for (size_t half = at; half < at + 8; half += kWordBytes) {
      const size_t word = half / kWordBytes;
      if ((order.read[word / 32] >> (word % 32) & 1) != 0 &&
          std::memcmp(&order.messages[half], &messages[half], kWordBytes) != 0)
        return nullptr;
    }
  }
  return &order;
}

}  // namespace worker
