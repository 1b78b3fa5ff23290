// The places that an instruction reaches over all threads of a launch, where its address is a sum
// (affine_forms.h) and runs under conditions.
//
// A condition on an index (i < n) cuts the index's values. When the address moves with the same
// index, the places are equally spaced along each number of thread and block, and along each index
// that is cut. Internal to replay/. Thread safety: pure.
#pragma once

#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "replay/affine_forms.h"

namespace replay {

struct GuardedPlaces {
  // So many places, this far from each other.
  struct Steps {
    __int128 step = 0, count = 0;
    bool operator<(const Steps& other) const {
      return std::tie(step, count) < std::tie(other.step, other.count);
    }
  };

  __int128 begin = 0;        // the smallest address
  std::vector<Steps> steps;  // from there, all sums of them; ascending
  bool reached = true;       // false: the conditions hold for no thread
  // Every place is reached, if any is. Otherwise a condition or more is not known to be of this
  // form, and was left out: no other places are reached.
  bool exact = true;

  // The largest address.
  __int128 last() const;
};

// Nothing: the address is no sum.
std::optional<GuardedPlaces> PlacesOf(const AffineForms& forms, TermIndex address,
                                      std::span<const Condition> conditions);

}  // namespace replay
