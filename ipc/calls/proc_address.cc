#include "ipc/calls/proc_address.h"

#include <algorithm>
#include <iterator>

namespace ipc {

namespace {

struct Variant {
  std::string_view base;
  int version;
  bool per_thread;
  std::string_view symbol;
};

// A literal's length by sizeof: counted by the compiler, 637 of them cost seconds.
#define LANEWAY_TEXT(literal) std::string_view(literal, sizeof(literal) - 1)
constexpr Variant kVariants[] = {
#define ENTRY(base, version, suffix, symbol) \
  {LANEWAY_TEXT(#base), version, sizeof(#suffix) > 1, LANEWAY_TEXT(#symbol)},
#include "ipc/calls/entries.inc"
#undef ENTRY
};
#undef LANEWAY_TEXT

}  // namespace

Entry FindEntry(std::string_view base, int cuda_version, bool per_thread) {
  const Variant* variant = std::lower_bound(
      std::begin(kVariants), std::end(kVariants), base,
      [](const Variant& entry, std::string_view name) { return entry.base < name; });
  Entry found;
  // Per-thread variants follow the legacy ones, newer follow older: the last that fits is the one.
  for (; variant != std::end(kVariants) && variant->base == base; ++variant) {
    if (found.status == EntryStatus::kNoSuchSymbol) found.status = EntryStatus::kVersionTooOld;
    if (variant->version > cuda_version || (variant->per_thread && !per_thread)) continue;
    found = {EntryStatus::kFound, variant->symbol};
  }
  return found;
}

}  // namespace ipc
