#include "graphs/user_object.h"

#include <algorithm>
#include <utility>

namespace graphs {

void UserObject::Release(unsigned count) {
  unsigned held = references_.load();
  while (!references_.compare_exchange_weak(held, held - std::min(count, held))) {
  }
  if (held != 0 && held <= count) destroy_(pointer_);
}

UserReferences::UserReferences(const UserReferences& other) : counts_(other.counts_) {
  for (const auto& [object, count] : counts_) object->Retain(count);
}

UserReferences& UserReferences::operator=(const UserReferences& other) {
  UserReferences copy(other);
  counts_.swap(copy.counts_);
  return *this;
}

UserReferences::~UserReferences() {
  for (const auto& [object, count] : counts_) object->Release(count);
}

void UserReferences::Take(const std::shared_ptr<UserObject>& object, unsigned count) {
  counts_[object] += count;
}

bool UserReferences::Release(const std::shared_ptr<UserObject>& object, unsigned count) {
  const auto held = counts_.find(object);
  if (held == counts_.end() || held->second < count) return false;
  held->second -= count;
  if (held->second == 0) counts_.erase(held);
  object->Release(count);
  return true;
}

}  // namespace graphs
