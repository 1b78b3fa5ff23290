#include "daemon/control/shrinking.h"

#include <utility>

namespace control {

void Shrinking::Tell(const Order& order, const std::set<uint32_t>& workers) {
  Pending& pending = pending_[order.lane];
  pending.bytes = order.bytes;
  for (const uint32_t worker : workers) pending.answers[worker].insert(order.bytes);
}

std::optional<Shrinking::Order> Shrinking::Answer(uint32_t worker, const Order& answered) {
  const std::map<uint64_t, Pending>::iterator found = pending_.find(answered.lane);
  if (found == pending_.end()) return std::nullopt;
  std::map<uint32_t, std::multiset<uint64_t>>& answers = found->second.answers;
  const std::map<uint32_t, std::multiset<uint64_t>>::iterator sizes = answers.find(worker);
  if (sizes == answers.end()) return std::nullopt;
  const std::multiset<uint64_t>::iterator size = sizes->second.find(answered.bytes);
  if (size == sizes->second.end()) return std::nullopt;
  sizes->second.erase(size);
  if (sizes->second.empty()) answers.erase(sizes);
  if (!answers.empty()) return std::nullopt;
  const Order done{answered.lane, found->second.bytes};
  pending_.erase(found);
  return done;
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
