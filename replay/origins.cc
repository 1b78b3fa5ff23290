#include "replay/origins.h"

#include <algorithm>

namespace replay {
namespace {

// Beyond these a value is one that nothing is known of: compilers choose between few addresses.
constexpr size_t kAlternativesMax = 8;

// Whether the smaller says all that the larger does. One with kLoaded is never attributed, so it is
// not dropped for one without.
bool Holds(OriginSet larger, OriginSet smaller) {
  return (larger & smaller) == smaller && ((larger ^ smaller) & kLoaded) == 0;
}

}  // namespace

Origins Origins::Number() { return Of(0); }

Origins Origins::Of(OriginSet one) {
  Origins value;
  value.touched_ = one;
  value.alternatives_ = {one};
  return value;
}

Origins Origins::Unknown() {
  Origins value;
  value.unknown_ = true;
  return value;
}

void Origins::Add(OriginSet alternative) {
  // An alternative that holds a smaller one asks for less than that does.
  const auto is_held = [&](OriginSet each) { return Holds(alternative, each); };
  if (std::any_of(alternatives_.begin(), alternatives_.end(), is_held)) return;
  std::erase_if(alternatives_, [&](OriginSet each) { return Holds(each, alternative); });
  alternatives_.insert(std::lower_bound(alternatives_.begin(), alternatives_.end(), alternative),
                       alternative);
  if (alternatives_.size() > kAlternativesMax) *this = Unknown();
}

bool Origins::Join(const Origins& other) {
  if (unknown_) return false;
  const Origins before = *this;
  if (other.unknown_) {
    *this = Unknown();
    return true;
  }
  touched_ |= other.touched_;
  for (OriginSet each : other.alternatives_) {
    Add(each);
    if (unknown_) break;
  }
  return !(*this == before);
}

Origins Origins::Plus(const Origins& other) const {
  if (unknown_ || other.unknown_) return Unknown();
  Origins sum;
  sum.touched_ = touched_ | other.touched_;
  for (OriginSet mine : alternatives_) {
    for (OriginSet theirs : other.alternatives_) {
      sum.Add(mine | theirs);
      if (sum.unknown_) return sum;
    }
  }
  return sum.alternatives_.empty() ? Origins() : sum;
}

Origins Origins::Scaled() const {
  if (unknown_ || bottom()) return *this;
  Origins number = Number();
  number.touched_ = touched_ & ~(kPrivate | kLoaded);
  return number;
}

}  // namespace replay
