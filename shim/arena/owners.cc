#include "shim/arena/owners.h"

#include <algorithm>

namespace shim::arena {

// An allocation and its end ask several times for the same one.
Owners::Account& Owners::Of(uint32_t owner) {
  if (latest_.account == nullptr || latest_.owner != owner) latest_ = {owner, &accounts_[owner]};
  return *latest_.account;
}

void Owners::Use(uint32_t owner, int64_t bytes) {
  live_bytes_ += static_cast<uint64_t>(bytes);
  if (owner == kProgram) return;
  Usage& usage = Of(owner).usage;
  usage.used += static_cast<uint64_t>(bytes);
  usage.used_high = std::max(usage.used_high, usage.used);
}

void Owners::Reserve(uint32_t owner, int64_t bytes) {
  if (owner == kProgram || owner == kNobody) return;
  Usage& usage = Of(owner).usage;
  usage.reserved += static_cast<uint64_t>(bytes);
  usage.reserved_high = std::max(usage.reserved_high, usage.reserved);
}

void Owners::Hold(uint32_t owner, int64_t bytes) {
  Of(owner).usage.held += static_cast<uint64_t>(bytes);
  held_bytes_ += static_cast<uint64_t>(bytes);
}

void Owners::Charge(uint32_t owner, int64_t bytes) {
  Use(owner, bytes);
  live_bytes_ -= static_cast<uint64_t>(bytes);
  Reserve(owner, bytes);
}

Owners::Usage Owners::UsageOf(uint32_t owner) const {
  const std::unordered_map<uint32_t, Account>::const_iterator it = accounts_.find(owner);
  return it == accounts_.end() ? Usage{} : it->second.usage;
}

void Owners::ResetHigh(uint32_t owner, bool used) {
  Usage& usage = Of(owner).usage;
  if (used) {
    usage.used_high = usage.used;
  } else {
    usage.reserved_high = usage.reserved;
  }
}

uint64_t Owners::ThresholdOf(uint32_t owner) const {
  const std::unordered_map<uint32_t, Account>::const_iterator it = accounts_.find(owner);
  return it == accounts_.end() ? 0 : it->second.threshold;
}

}  // namespace shim::arena
