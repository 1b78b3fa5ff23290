// Orders to shrink lanes, and the workers that have not answered yet.
//
// A lane's memory is free when every worker that has the order has answered. A lost worker has let
// go of its memory, but the lane's extents stay with the keeper: the order is sent again to the
// workers that have the lane by then. Each message is answered once, so a late answer counts for no
// later order. Thread safety: one thread.
#pragma once

#include <cstdint>
#include <map>
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
  // True: this was the last answer. The order is done, and forgotten.
  bool Answer(uint32_t worker, const Order& order);
  void Forget(uint64_t lane) { pending_.erase(lane); }
  // The orders that the lost worker has not answered: to be sent again.
  std::vector<Order> Lose(uint32_t worker);
  // The orders for which there was no worker.
  std::vector<Order> Untold() const;

 private:
  struct Pending {
    uint64_t bytes = 0;
    std::map<uint32_t, unsigned> answers;  // that are to come, by worker
  };
  std::map<uint64_t, Pending> pending_;  // by lane
};

}  // namespace control
