#include "shim/allocations.h"

#include <utility>

#include "shim/iterations/iterations.h"
#include "shim/proof_facts.h"
#include "shim/recording/recorder.h"

namespace shim {

void Allocations::Add(const Allocation& allocation) {
  recording::Recorder* const recorder = recording::Recorder::Process();
  if (recorder != nullptr && allocation.kind == Allocation::Kind::kDevice)
    recorder->OnAllocated(allocation.base, allocation.bytes);
  const base::MutexLock lock(&mutex_);
  if (allocation.kind == Allocation::Kind::kDevice)
    iterations::Iterations::Process().NoteAllocated(allocation.bytes);
  Allocation* added = nullptr;
  if (spare_.empty()) {
    added = &by_base_[allocation.base];
  } else {
    spare_.back().key() = allocation.base;
    added = &by_base_.insert(std::move(spare_.back())).position->second;
    spare_.pop_back();
  }
  *added = allocation;
  added->id = ++last_id_;
  if (known_.has_value() && known_->Add({allocation.base, allocation.bytes})) ProofFacts::Changed();
  count_.store(by_base_.size(), std::memory_order_relaxed);
}

bool Allocations::Find(uint64_t address, Allocation* found) const {
  const base::MutexLock lock(&mutex_);
  std::map<uint64_t, Allocation>::const_iterator it = by_base_.upper_bound(address);
  if (it == by_base_.begin()) return false;
  --it;
  if (address - it->second.base >= it->second.bytes) return false;
  *found = it->second;
  return true;
}

bool Allocations::Remove(uint64_t base, Allocation::Kind kind, Allocation* removed) {
  const base::MutexLock lock(&mutex_);
  const std::map<uint64_t, Allocation>::iterator it = by_base_.find(base);
  if (it == by_base_.end() || it->second.kind != kind) return false;
  *removed = it->second;
  if (kind == Allocation::Kind::kDevice)
    iterations::Iterations::Process().NoteFreed(removed->bytes);
  std::map<uint64_t, Allocation>::node_type node = by_base_.extract(it);
  if (spare_.size() < kSpareMax) spare_.push_back(std::move(node));
  count_.store(by_base_.size(), std::memory_order_relaxed);
  return true;
}

void Allocations::Remember() {
  const base::MutexLock lock(&mutex_);
  known_.emplace();
}

std::optional<KnownRanges::Range> Allocations::FindKnown(uint64_t address) const {
  const base::MutexLock lock(&mutex_);
  return known_.has_value() ? known_->Find(address) : std::nullopt;
}

std::vector<Allocation> Allocations::OfContext(uint64_t context) const {
  const base::MutexLock lock(&mutex_);
  std::vector<Allocation> all;
  for (const std::pair<const uint64_t, Allocation>& entry : by_base_) {
    if (entry.second.context == context) all.push_back(entry.second);
  }
  return all;
}

std::vector<Allocation> Allocations::All() const {
  const base::MutexLock lock(&mutex_);
  std::vector<Allocation> all;
  for (const std::pair<const uint64_t, Allocation>& entry : by_base_) all.push_back(entry.second);
  return all;
}

}  // namespace shim
