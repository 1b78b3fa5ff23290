// Orders of launches in chunks (ipc/chunks) that the client has proven to do the same as one launch
// after another (replay/run_order.h, shim/run_orders.h).
//
// An order is of certain messages. It holds for messages that differ in words which the proof has
// not read. With a false proof a client harms itself alone: its launches touch its own memory. What
// the client sends is checked here and nowhere else: the messages are whole launches within the
// chunk area, and an edge leads from an earlier launch to a later launch.
//
// An order may rename parameters: the launches then use scratch memory (scratch_memory.h) in place
// of memory of the program. Each order has a part of the scratch memory to itself, because orders
// of several streams are followed at the same time. When orders are forgotten, all parts are free
// again and the memory goes. Thread safety: one session's thread.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/worker/renamed_arguments.h"
#include "daemon/worker/scratch_memory.h"
#include "ipc/calls/limits.h"
#include "ipc/door.h"

namespace worker {

class LaunchOrders final : public ipc::OrderCalls {
 public:
  struct Order {
    uint64_t id = 0;                        // of this order alone
    std::vector<std::byte> messages;        // of the proof
    std::vector<uint32_t> read;             // a bit for each word of them
    std::vector<uint32_t> edges;            // pairs of launches
    std::vector<RenamedParameter> renames;  // their addresses: distances in the scratch memory
  };

  // `area_untrusted`: limits::kChunkAreaBytes. Both outlive this object.
  LaunchOrders(std::span<const std::byte> area_untrusted, ScratchMemory* scratch)
      : area_untrusted_(area_untrusted), scratch_(*scratch) {}
  LaunchOrders(const LaunchOrders&) = delete;

  // --- ipc::OrderCalls, of which all arguments are untrusted
  CUresult OrderLaunches(unsigned place, unsigned bytes, const uint32_t* edges, unsigned edge_words,
                         const uint32_t* read, unsigned read_words, const uint32_t* patches,
                         unsigned patch_words) override;
  CUresult OrderRenamedLaunches(unsigned place, unsigned bytes, const uint32_t* edges,
                                unsigned edge_words, const uint32_t* read, unsigned read_words,
                                const uint32_t* patches, unsigned patch_words,
                                const uint32_t* renames, unsigned rename_words,
                                unsigned rename_bytes) override;
  CUresult ForgetOrders() override;

  // The order that holds for the first of these messages, which lie at `place`. Null: none is known
  // there, or it was proven of other messages. Valid until the next call of another method.
  const Order* Find(uint32_t place, std::span<const std::byte> messages) const;
  // True when an order begins at this place, of whatever messages.
  bool Knows(uint32_t place) const { return orders_.contains(place); }
  // Where the scratch memory of orders begins, which this makes; 0: there is none, and no order
  // that renames may be followed. REQUIRES: the session may use the device.
  CUdeviceptr TakeScratch() const { return scratch_.Take(); }
  // Orders that rename hold no more, and the scratch memory goes: the program needs the room.
  void ForgetRenames();
  // As ForgetOrders(), where the scratch memory goes with all memory of the session.
  void Clear();
  size_t size() const { return orders_.size(); }

  // Of all orders together. A client that is as it should be has a fraction: its runs lie beside
  // each other in the chunk area, and an order has a few words for each launch.
  static constexpr size_t kBytesMax = 4 * ipc::limits::kChunkAreaBytes;

 private:
  struct Told;  // what one call says
  CUresult TakeUntrusted(const Told& told);

  const std::span<const std::byte> area_untrusted_;
  ScratchMemory& scratch_;
  uint64_t scratch_bytes_ = 0;  // of its parts that orders have
  uint64_t last_id_ = 0;
  size_t bytes_ = 0;                             // of what orders_ holds
  absl::flat_hash_map<uint32_t, Order> orders_;  // by place
};

}  // namespace worker
