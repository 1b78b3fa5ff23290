// The comparisons of expressions (address_expression.h) that a predicate of a kernel stands for.
// Internal to replay/. Thread safety: one thread.
#pragma once

#include <vector>

#include "replay/address_expression.h"
#include "replay/address_terms.h"
#include "replay/certain_blocks.h"
#include "softgpu/ptx/ir.h"

namespace replay {

// Adds conditions that hold wherever the guard holds. True: where they all hold, the guard does.
// `terms`: of the entry.
bool AddConditions(const softgpu::ptx::Function& entry, AddressTerms* terms, const Guard& guard,
                   std::vector<Condition>* conditions);

}  // namespace replay
