#include "shim/textures.h"

namespace shim {

void Textures::Add(Kind kind, unsigned long long number, const Facts& facts) {
  const base::MutexLock lock(&mutex_);
  objects_.insert_or_assign({kind, number}, facts);
}

std::optional<Textures::Facts> Textures::Find(Kind kind, unsigned long long number) const {
  const base::MutexLock lock(&mutex_);
  const std::map<Key, Facts>::const_iterator found = objects_.find({kind, number});
  if (found == objects_.end()) return std::nullopt;
  return found->second;
}

std::optional<Textures::Entry> Textures::Remove(Kind kind, unsigned long long number) {
  const base::MutexLock lock(&mutex_);
  const std::map<Key, Facts>::iterator found = objects_.find({kind, number});
  if (found == objects_.end()) return std::nullopt;
  const Entry entry = {kind, number, found->second.wire};
  objects_.erase(found);
  return entry;
}

bool Textures::empty() const {
  const base::MutexLock lock(&mutex_);
  return objects_.empty();
}

std::vector<Textures::Entry> Textures::OfContext(uint64_t context) const {
  const base::MutexLock lock(&mutex_);
  std::vector<Entry> entries;
  for (const auto& [key, facts] : objects_) {
    if (facts.context == context) entries.push_back({key.first, key.second, facts.wire});
  }
  return entries;
}

}  // namespace shim
