#include "replay/kernel_stores.h"

#include <optional>
#include <utility>

#include "replay/address_terms.h"
#include "replay/arithmetic.h"
#include "replay/certain_blocks.h"
#include "replay/conditions.h"
#include "softgpu/ptx/ir.h"

namespace replay {
namespace {

using softgpu::ptx::Block;
using softgpu::ptx::Function;
using softgpu::ptx::Instruction;
using softgpu::ptx::kNoIndex;
using softgpu::ptx::Op;
using softgpu::ptx::Operand;
using softgpu::ptx::Space;
using softgpu::ptx::Type;

constexpr size_t kStoresMax = 256;

class StoreCollector {
 public:
  StoreCollector(const Function& entry, AddressTerms* terms) : entry_(entry), terms_(*terms) {}

  std::vector<CertainStore> Run() {
    const std::vector<std::optional<std::vector<Guard>>> certain = CertainBlocks(entry_);
    for (size_t b = 0; b < entry_.blocks.size(); ++b) {
      if (!certain[b].has_value()) continue;
      const Block& block = entry_.blocks[b];
      for (uint32_t n = block.begin; n < block.end; ++n) Visit(entry_.instructions[n], *certain[b]);
    }
    return std::move(stores_);
  }

 private:
  void Visit(const Instruction& i, std::vector<Guard> guards) {
    const bool is_global = i.space == Space::kGlobal || i.space == Space::kGeneric;
    if (i.op != Op::kSt || !is_global || i.Has(softgpu::ptx::kVolatile)) return;
    if (stores_.size() >= kStoresMax) return;
    const Operand* o = entry_.Operands(i);
    CertainStore store{.address = terms_.Of(o[0], 64), .bytes = BytesOf(i, o[1])};
    if (store.address == kNoTerm) return;
    if (i.guard != kNoIndex) guards.push_back({i.guard, i.guard_negated != 0});
    for (const Guard& guard : guards) {
      if (!AddConditions(entry_, &terms_, guard, &store.conditions)) return;
    }
    stores_.push_back(std::move(store));
  }

  const Function& entry_;
  AddressTerms& terms_;
  std::vector<CertainStore> stores_;
};

}  // namespace

std::vector<CertainStore> StoresOf(const Function& entry, AddressTerms* terms) {
  return StoreCollector(entry, terms).Run();
}

}  // namespace replay
