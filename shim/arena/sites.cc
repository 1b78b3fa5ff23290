#include "shim/arena/sites.h"

namespace shim::arena {
namespace {

constexpr uint64_t kPlace = 1, kSite = 2;
constexpr int kStreakMax = 100;

}  // namespace

uint64_t Sites::Key(uint64_t kind, uint64_t a, uint64_t b) {
  uint64_t key = a * 0x9e3779b97f4a7c15ull + kind;
  key = (key ^ key >> 29 ^ b * 0x94d049bb133111ebull) * 0xbf58476d1ce4e5b9ull;
  return (key ^ key >> 32) | 1;
}

Sites::Class Sites::ClassOf(const Entry& entry) {
  if (entry.burnt || entry.streak <= -kRounds) return Class::kPersistent;
  return entry.streak >= kRounds ? Class::kEphemeral : Class::kUndecided;
}

Sites::Class Sites::Find(uint64_t key) const {
  const std::unordered_map<uint64_t, Entry>::const_iterator it = entries_.find(key);
  return it == entries_.end() ? Class::kUndecided : ClassOf(it->second);
}

Sites::Class Sites::Ask(uint64_t bytes) const { return Find(Key(kPlace, births_.size(), bytes)); }

Sites::Class Sites::AskSite(uint64_t bytes, uint64_t site) const {
  const Class decided = Find(Key(kSite, site, bytes));
  return decided == Class::kUndecided ? Class::kPersistent : decided;
}

Sites::Birth Sites::OnAllocate(uint64_t bytes, uint64_t site, bool ephemeral) {
  const Birth birth = next();
  births_.push_back(
      {Key(kPlace, births_.size(), bytes), Key(kSite, site, bytes), false, ephemeral});
  return birth;
}

void Sites::Learn(uint64_t key, const Record& record) {
  Entry& entry = entries_[key];
  if (record.dead) {
    entry.streak = static_cast<int8_t>(entry.streak < 0            ? 1
                                       : entry.streak < kStreakMax ? entry.streak + 1
                                                                   : kStreakMax);
    if (entry.streak >= kPenalty) entry.burnt = false;
    return;
  }
  entry.streak = static_cast<int8_t>(entry.streak > 0             ? -1
                                     : entry.streak > -kStreakMax ? entry.streak - 1
                                                                  : -kStreakMax);
  if (record.ephemeral) entry.burnt = true;
}

std::vector<Sites::Birth> Sites::Outlived(Birth next) const {
  std::vector<Birth> outlived;
  for (Birth birth = first_; birth < next; ++birth) {
    const Record& record = births_[birth - first_];
    if (record.ephemeral && !record.dead) outlived.push_back(birth);
  }
  return outlived;
}

void Sites::OnLost() {
  first_ = next();
  births_.clear();
}

void Sites::OnBoundary(Birth next) {
  if (entries_.size() > kEntriesMax) entries_.clear();
  const std::vector<Record>::iterator end = births_.begin() + static_cast<long>(next - first_);
  // Of the allocations of one site, those that outlived have the last word.
  for (std::vector<Record>::iterator record = births_.begin(); record != end; ++record) {
    Learn(record->place, *record);
    if (record->dead) Learn(record->site, *record);
  }
  for (std::vector<Record>::iterator record = births_.begin(); record != end; ++record) {
    if (record->dead) continue;
    Learn(record->site, *record);
    wrong_ += record->ephemeral;
  }
  births_.erase(births_.begin(), end);
  first_ = next;
}

}  // namespace shim::arena
