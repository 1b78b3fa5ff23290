#include "daemon/worker/own_addresses.h"

#include <algorithm>
#include <iterator>

namespace worker {

bool OwnAddresses::Owns(uint64_t address, uint64_t bytes) const {
  return arena_.Contains(address, bytes) || pinned_.Contains(address, bytes) ||
         InVariable(address, bytes);
}

bool OwnAddresses::Backs(uint64_t address, uint64_t bytes) {
  if (arena_.Contains(address, bytes))
    return !IsShut(address, bytes) && (!checks_ || backed_.Covers(address, bytes));
  return pinned_.Contains(address, bytes) || InVariable(address, bytes);
}

bool OwnAddresses::InVariable(uint64_t address, uint64_t bytes) const {
  std::map<uint64_t, Variable>::const_iterator variable = variables_.upper_bound(address);
  if (variable == variables_.begin()) return false;
  --variable;
  const uint64_t offset = address - variable->first, size = variable->second.bytes;
  return offset < size && bytes <= size - offset;
}

bool OwnAddresses::GiveUp(uint64_t address, uint64_t bytes) {
  const auto [range, fresh] = shut_.try_emplace(address, Shut{address + bytes, false});
  if (!fresh && !range->second.sealed) return false;
  range->second.sealed = false;
  ++losses_;
  return true;
}

bool OwnAddresses::IsShut(uint64_t address, uint64_t bytes) const {
  std::map<uint64_t, Shut>::const_iterator range = shut_.lower_bound(address + bytes);
  return range != shut_.begin() && (--range)->second.end > address;
}

bool OwnAddresses::IsSealed(uint64_t address) const {
  const std::map<uint64_t, Shut>::const_iterator range = shut_.find(address);
  return range != shut_.end() && range->second.sealed;
}

void OwnAddresses::AddVariable(CUmodule module, uint64_t address, uint64_t bytes) {
  variables_[address] = {bytes, module};
}

void OwnAddresses::ForgetModule(CUmodule module) {
  std::erase_if(variables_,
                [module](const auto& variable) { return variable.second.module == module; });
  ++losses_;
}

void OwnAddresses::ForgetAll() {
  variables_.clear();
  shut_.clear();
  ++losses_;
}

bool TouchedSpans::AreBacked(OwnAddresses* addresses) {
  const uint64_t losses = addresses->losses();
  if (checked_ && losses == losses_) return true;
  checked_ = std::all_of(spans_.begin(), spans_.end(), [addresses](const AddressSpan& span) {
    return addresses->Backs(span.address, span.bytes);
  });
  losses_ = losses;
  return checked_;
}

}  // namespace worker
