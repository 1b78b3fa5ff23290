// The stores that a kernel certainly does: each at an address that is known for every thread, under
// conditions that are known for every thread.
//
// From them follows which bytes a launch overwrites whatever was there before
// (covered_ranges.h). A store that is not listed may happen as well: kernel_access.h lists all that
// may happen. Stores in functions and in loops over memory are left out, and so are volatile ones.
// Thread safety: pure.
#pragma once

#include <cstdint>
#include <vector>

#include "replay/address_expression.h"

namespace softgpu::ptx {
struct Function;
}

namespace replay {

struct CertainStore {
  TermIndex address = kNoTerm;
  uint32_t bytes = 0;
  std::vector<Condition> conditions;  // all of them hold: then the thread stores
};

class AddressTerms;

// `terms`: of the entry.
std::vector<CertainStore> StoresOf(const softgpu::ptx::Function& entry, AddressTerms* terms);

}  // namespace replay
