// Orders of launches in chunks (ipc/chunks) that the client has proven to do the same as one launch
// after another (replay/run_order.h, shim/run_orders.h).
//
// An order is of certain messages. It holds for messages that differ in words which the proof has
// not read. With a false proof a client harms itself alone: its launches touch its own memory. What
// the client sends is checked here and nowhere else: the messages are whole launches within the
// chunk area, and an edge leads from an earlier launch to a later launch.
// Thread safety: one session's thread.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ipc/calls/limits.h"
#include "ipc/door.h"

namespace worker {

class LaunchOrders final : public ipc::OrderCalls {
 public:
  struct Order {
    uint64_t id = 0;                  // of this order alone
    std::vector<std::byte> messages;  // of the proof
    std::vector<uint32_t> read;       // a bit for each word of them
    std::vector<uint32_t> edges;      // pairs of launches
  };

  // `area_untrusted`: limits::kChunkAreaBytes, outlives this object.
  explicit LaunchOrders(std::span<const std::byte> area_untrusted)
      : area_untrusted_(area_untrusted) {}
  LaunchOrders(const LaunchOrders&) = delete;

  // --- ipc::OrderCalls, of which all arguments are untrusted
  CUresult OrderLaunches(unsigned place, unsigned bytes, const uint32_t* edges, unsigned edge_words,
                         const uint32_t* read, unsigned read_words, const uint32_t* patches,
                         unsigned patch_words) override;
  CUresult ForgetOrders() override;

  // The order that holds for the first of these messages, which lie at `place`. Null: none is known
  // there, or it was proven of other messages. Valid until the next call of another method.
  const Order* Find(uint32_t place, std::span<const std::byte> messages) const;
  // True when an order begins at this place, of whatever messages.
  bool Knows(uint32_t place) const { return orders_.contains(place); }
  size_t size() const { return orders_.size(); }

  // Of all orders together. A client that is as it should be has a fraction: its runs lie beside
  // each other in the chunk area, and an order has a few words for each launch.
  static constexpr size_t kBytesMax = 4 * ipc::limits::kChunkAreaBytes;

 private:
  const std::span<const std::byte> area_untrusted_;
  uint64_t last_id_ = 0;
  size_t bytes_ = 0;                             // of what orders_ holds
  absl::flat_hash_map<uint32_t, Order> orders_;  // by place
};

}  // namespace worker
