// Lanes that workers were told to make smaller, and who has not answered yet.
//
// Their memory is free when everybody who was told has let go of it. A worker that is lost has let
// go of all it had, but perhaps nobody else gives back what is the lane's: its order is told anew,
// to whoever has the lane by then. Each telling is answered once, so late answers count for nothing
// that was ordered since. Thread safety: none; one thread.
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

  // These were told, each of which is to answer; none: the order waits for somebody to be there.
  void Tell(const Order& order, const std::set<uint32_t>& workers);
  // True: it was the last answer. The order is done, and forgotten.
  bool Answer(uint32_t worker, const Order& order);
  void Forget(uint64_t lane) { pending_.erase(lane); }
  // What it has not answered, and never will: to be told anew.
  std::vector<Order> Lose(uint32_t worker);
  // What nobody was there to hear.
  std::vector<Order> Untold() const;

 private:
  struct Pending {
    uint64_t bytes = 0;
    std::map<uint32_t, unsigned> answers;  // that are to come, by worker
  };
  std::map<uint64_t, Pending> pending_;  // by lane
};

}  // namespace control
