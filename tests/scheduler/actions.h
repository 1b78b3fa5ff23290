// What tests look for among the scheduler's actions.
#pragma once

#include <variant>
#include <vector>

#include "scheduler/event.h"

namespace scheduler {

// Those of one kind, in order.
template <typename Kind>
std::vector<Kind> Of(const std::vector<Action>& actions) {
  std::vector<Kind> found;
  for (const Action& action : actions) {
    if (const Kind* const one = std::get_if<Kind>(&action)) found.push_back(*one);
  }
  return found;
}

}  // namespace scheduler
