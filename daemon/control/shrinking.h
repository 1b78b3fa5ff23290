// Orders to shrink lanes, and the workers that have not answered yet.
//
// A lane's memory is free when every worker that has the order has answered. A lost worker has let
// go of its memory, but the lane's extents stay with the keeper: the order is sent again to the
// workers that have the lane by then. A worker answers each message once, and names its size. So a
// late answer counts for no later order, and a lane's newer order waits for the answers to the
// older one, too. Thread safety: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace control {

class Shrinking {
 public:
  struct Order {
    uint64_t lane = 0;
    uint64_t bytes = 0;  // that may stay
  };

  // The order was sent to these workers, each of which is to answer. None: the order waits for a
  // worker.
  void Tell(const Order& order, const std::set<uint32_t>& workers);
  // The worker has carried out `answered`. Returns the lane's newest order with the last answer: it
  // is done, and forgotten.
  std::optional<Order> Answer(uint32_t worker, const Order& answered);
  void Forget(uint64_t lane) { pending_.erase(lane); }
  // The orders that the lost worker has not answered: to be sent again.
  std::vector<Order> Lose(uint32_t worker);
  // The orders for which there was no worker.
  std::vector<Order> Untold() const;

 private:
  struct Pending {
    uint64_t bytes = 0;                                   // of the newest order
    std::map<uint32_t, std::multiset<uint64_t>> answers;  // sizes to be answered, by worker
  };
  std::map<uint64_t, Pending> pending_;  // by lane
};

}  // namespace control
