#include "daemon/control/shrinking.h"

#include <utility>

namespace control {

void Shrinking::Tell(const Order& order, const std::set<uint32_t>& workers) {
  Pending& pending = pending_[order.lane];
  pending.bytes = order.bytes;
  for (const uint32_t worker : workers) ++pending.answers[worker];
}

bool Shrinking::Answer(uint32_t worker, const Order& order) {
  const std::map<uint64_t, Pending>::iterator found = pending_.find(order.lane);
  if (found == pending_.end() || found->second.bytes != order.bytes) return false;
  std::map<uint32_t, unsigned>& answers = found->second.answers;
  const std::map<uint32_t, unsigned>::iterator answer = answers.find(worker);
  if (answer == answers.end()) return false;
  if (--answer->second == 0) answers.erase(answer);
  if (!answers.empty()) return false;
  pending_.erase(found);
  return true;
}

std::vector<Shrinking::Order> Shrinking::Lose(uint32_t worker) {
  std::vector<Order> lost;
  for (std::pair<const uint64_t, Pending>& entry : pending_) {
    if (entry.second.answers.erase(worker) != 0) lost.push_back({entry.first, entry.second.bytes});
  }
  return lost;
}

std::vector<Shrinking::Order> Shrinking::Untold() const {
  std::vector<Order> untold;
  for (const std::pair<const uint64_t, Pending>& entry : pending_) {
    if (entry.second.answers.empty()) untold.push_back({entry.first, entry.second.bytes});
  }
  return untold;
}

}  // namespace control
