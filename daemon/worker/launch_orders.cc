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
  return order.messages.size() + kWordBytes * (order.read.size() + order.edges.size()) +
         sizeof(RenamedParameter) * order.renames.size();
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

// The triples of a message, which ascend, so that none is there twice. Each address lies in the
// order's part of the scratch memory, which begins at `part`.
bool NoteRenamesUntrusted(std::span<const uint32_t> words, uint32_t part_bytes, uint64_t part,
                          uint32_t launches, LaunchOrders::Order* order) {
  if (words.size() % 3 != 0) return false;
  for (size_t i = 0; i < words.size(); i += 3) {
    const RenamedParameter rename{words[i], words[i + 1], part + words[i + 2]};
    if (rename.launch >= launches || words[i + 2] >= part_bytes) return false;
    if (i != 0 && std::pair(words[i - 3], words[i - 2]) >= std::pair(rename.launch, rename.offset))
      return false;
    order->renames.push_back(rename);
  }
  return true;
}

uint64_t RoundUpToPart(uint64_t bytes) {
  constexpr uint64_t kAlignment = ipc::limits::kAllocationAlignment;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

struct LaunchOrders::Told {
  uint32_t place = 0, bytes = 0;
  std::span<const uint32_t> edges, read, patches, renames;
  uint32_t rename_bytes = 0;
};

CUresult LaunchOrders::OrderLaunches(unsigned place, unsigned bytes, const uint32_t* edges,
                                     unsigned edge_words, const uint32_t* read, unsigned read_words,
                                     const uint32_t* patches, unsigned patch_words) {
  return TakeUntrusted({.place = place,
                        .bytes = bytes,
                        .edges = {edges, edge_words},
                        .read = {read, read_words},
                        .patches = {patches, patch_words},
                        .renames = {}});
}

CUresult LaunchOrders::OrderRenamedLaunches(unsigned place, unsigned bytes, const uint32_t* edges,
                                            unsigned edge_words, const uint32_t* read,
                                            unsigned read_words, const uint32_t* patches,
                                            unsigned patch_words, const uint32_t* renames,
                                            unsigned rename_words, unsigned rename_bytes) {
  return TakeUntrusted({.place = place,
                        .bytes = bytes,
                        .edges = {edges, edge_words},
                        .read = {read, read_words},
                        .patches = {patches, patch_words},
                        .renames = {renames, rename_words},
                        .rename_bytes = rename_bytes});
}

CUresult LaunchOrders::TakeUntrusted(const Told& told) {
  if (told.place % 8 != 0 || told.bytes % 8 != 0 || told.bytes == 0 ||
      told.bytes > ipc::limits::kChunkBytesMax || told.place > area_untrusted_.size() ||
      told.bytes > area_untrusted_.size() - told.place ||
      told.read.size() != (told.bytes / kWordBytes + 31) / 32 ||
      told.rename_bytes > ipc::limits::kRenameBytesMax)
    return CUDA_ERROR_INVALID_VALUE;
  Order order;
  const auto messages = area_untrusted_.begin() + told.place;
  order.messages.assign(messages, messages + told.bytes);
  order.read.assign(told.read.begin(), told.read.end());
  order.edges.assign(told.edges.begin(), told.edges.end());
  if (!PatchUntrusted(told.patches, order.messages)) return CUDA_ERROR_INVALID_VALUE;
  const uint32_t launches = NoteLaunchesUntrusted(&order);
  if (launches == 0 || !AreEdgesUntrusted(order.edges, launches) ||
      !NoteRenamesUntrusted(told.renames, told.rename_bytes, scratch_bytes_, launches, &order))
    return CUDA_ERROR_INVALID_VALUE;
  if (const auto before = orders_.find(told.place); before != orders_.end()) {
    bytes_ -= BytesOf(before->second);
    orders_.erase(before);
  }
  const size_t bytes_more = BytesOf(order);
  const uint64_t part = RoundUpToPart(told.rename_bytes);
  if (orders_.size() >= kOrdersMax || bytes_more > kBytesMax - bytes_ ||
      part > ipc::limits::kRenameBytesMax - scratch_bytes_)
    return CUDA_SUCCESS;
  bytes_ += bytes_more;
  scratch_bytes_ += part;
  order.id = ++last_id_;
  orders_[told.place] = std::move(order);
  return CUDA_SUCCESS;
}

CUresult LaunchOrders::ForgetOrders() {
  Clear();
  scratch_.GiveBack();
  return CUDA_SUCCESS;
}

void LaunchOrders::ForgetRenames() {
  absl::erase_if(orders_, [this](const auto& entry) {
    if (entry.second.renames.empty()) return false;
    bytes_ -= BytesOf(entry.second);
    return true;
  });
  scratch_bytes_ = 0;
  scratch_.GiveBack();
}

void LaunchOrders::Clear() {
  orders_.clear();
  bytes_ = 0;
  scratch_bytes_ = 0;
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
