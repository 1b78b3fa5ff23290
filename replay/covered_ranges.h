// Which bytes a launch certainly overwrites.
//
// A store whose address is a sum over the numbers of thread and block (affine_forms.h) reaches
// equally spaced places along each of them. Where the steps, from the smallest to the largest,
// leave no gap between what was reached before, the places are one range. A condition on an index
// (i < n) cuts the index's values, when the address moves with the same index. What does not fit
// this scheme counts as not overwritten. Thread safety: pure.
#pragma once

#include <span>
#include <vector>

#include "replay/affine_forms.h"
#include "replay/kernel_stores.h"
#include "scheduler/streams/range.h"

namespace replay {

// Ascending; no two of the ranges touch each other.
std::vector<scheduler::streams::Range> CoveredRanges(const AffineForms& forms,
                                                     std::span<const CertainStore> stores);

}  // namespace replay
