// How every query of the driver answers with a list. Without an array the query tells the count
// alone. With one it fills as many elements as fit, puts nulls behind, and tells how many fitted.
// Thread safety: functions of their arguments.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace graphs {

// `count`: in, the room in `out`; out, what was told. False when it is null. `convert` makes an
// element of `out` from an item.
template <class Item, class Out, class Convert>
bool AnswerList(const std::vector<Item>& items, Out* out, size_t* count, const Convert& convert) {
  if (count == nullptr) return false;
  if (out == nullptr) {
    *count = items.size();
    return true;
  }
  for (size_t i = 0; i < *count; ++i) out[i] = i < items.size() ? convert(items[i]) : Out{};
  *count = std::min(*count, items.size());
  return true;
}

}  // namespace graphs
