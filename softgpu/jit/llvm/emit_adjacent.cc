// Loads of [p], [p + 4] and so on, as compilers unroll loops: where the lanes' addresses lie apart,
// the first of them loads 16 bytes for each lane, and the others find their words there. Nothing
// may be stored in between, or loaded in an order (volatile, acquire); what other threads store
// meanwhile may be seen by all of them, as weak loads allow.
#include <cstddef>

#include "softgpu/jit/llvm/emit.h"
#include "softgpu/jit/llvm/memory.h"

namespace softgpu::jit {

using exec::kLanes;
using exec::Warp;

namespace {
constexpr uint64_t kPieceBytes = 16;  // of one lane
constexpr uint64_t kPageBytes = 4096;
constexpr uint32_t kReach = 64;  // instructions from the first load to the last
}  // namespace

bool Emitter::MayBeAdjacent(uint32_t n, Access* access) const {
  const ProgramInst& i = flow_.program.code[n];
  return i.step == Step::kRow && i.guarded == 0 && flow_.operands[n].native &&
         AccessOf(RowOf(i.key), access) && !access->is_store && !access->shared && !IsOrdered(i) &&
         access->count == 1 && access->element_bytes >= 4 && !LoadsForNothing(n) &&
         flow_.FormOf(flow_.operands[n].sources[0]).Varies();
}

void Emitter::FindAdjacentTo(uint32_t first) {
  Access access;
  if (words_.count(first) != 0 || !MayBeAdjacent(first, &access)) return;
  const ProgramInst& begin = flow_.program.code[first];
  std::map<uint64_t, uint32_t> found = {{0, first}};  // by word
  for (uint32_t n = first; n < first + kReach; ++n) {
    const ProgramInst& i = flow_.program.code[n];
    const Operands& o = flow_.operands[n];
    if (n != first && flow_.leaders[n]) break;
    if (i.step != Step::kRow || !o.native) break;
    Access other;
    if (AccessOf(RowOf(i.key), &other) && (other.is_store || IsOrdered(i))) break;
    const uint64_t distance = i.imm - begin.imm;
    if (words_.count(n) == 0 && MayBeAdjacent(n, &other) && i.a == begin.a &&
        other.element_bytes == access.element_bytes && distance < kPieceBytes &&
        distance % access.element_bytes == 0) {
      found.emplace(distance / access.element_bytes, n);
    }
    bool moves = false;  // the address
    for (const Place& result : o.results) moves = moves || result.offset == begin.a;
    if (moves) break;
  }
  if (found.size() == 1) return;
  for (const auto& [word, n] : found) words_[n] = {adjacent_.size(), static_cast<uint32_t>(word)};
  Adjacent group = {b_.CreateAlloca(b_.getInt1Ty()), {}};
  for (uint64_t word = 0; word < kPieceBytes / access.element_bytes; ++word)
    group.values.push_back(b_.CreateAlloca(VectorOf(b_.getIntNTy(access.element_bytes * 8))));
  adjacent_.push_back(group);
}

// At the function's beginning.
void Emitter::FindAdjacent() {
  for (uint32_t n = 0; n < flow_.program.code.size(); ++n) FindAdjacentTo(n);
}

// The lanes' words, vector by vector: neighbours are interleaved, then pairs of them, within 16
// bytes at a time as the processor does it.
std::vector<Emitter::Value*> Emitter::Transposed(const std::vector<Value*>& pieces,
                                                 uint32_t words) {
  const auto interleave = [&](Value* a, Value* b, uint32_t unit, bool high) {
    const uint32_t size = llvm::cast<llvm::FixedVectorType>(a->getType())->getNumElements();
    std::vector<int> order;
    for (uint32_t e = 0; e < size; ++e) {
      const uint32_t chunk = e / words * words, at = e % words;
      const uint32_t from = at / (2 * unit) * unit + at % unit + (high ? words / 2 : 0);
      order.push_back(static_cast<int>(chunk + from + (at / unit % 2 != 0 ? size : 0)));
    }
    return b_.CreateShuffleVector(a, b, order);
  };
  const uint32_t parts = 8 / words;  // of 64 bytes a row
  std::vector<std::vector<Value*>> out(words);
  const uint32_t lanes = kLanes / parts;
  for (uint32_t part = 0; part < parts; ++part) {
    std::vector<Value*> rows;  // row r: lanes r, r + words, ...
    for (uint32_t r = 0; r < words; ++r) {
      std::vector<Value*> row;
      for (uint32_t lane = r; lane < lanes; lane += words)
        row.push_back(pieces[part * lanes + lane]);
      rows.push_back(Concatenated(row));
    }
    if (words == 4) {
      Value *a = interleave(rows[0], rows[1], 1, false), *b = interleave(rows[0], rows[1], 1, true);
      Value *c = interleave(rows[2], rows[3], 1, false), *d = interleave(rows[2], rows[3], 1, true);
      rows = {a, c, b, d};
    }
    for (uint32_t k = 0; k < words; ++k)
      out[k].push_back(interleave(rows[k / 2 * 2], rows[k / 2 * 2 + 1], words / 2, k % 2 != 0));
  }
  std::vector<Value*> all;
  for (const std::vector<Value*>& word : out) all.push_back(Concatenated(word));
  return all;
}

// The first of a group, whose addresses are in bounds and lie apart. Where a lane's 16 bytes span
// two pages each load goes by itself: only so a page fault is the right one's.
void Emitter::LoadTogether(const Memory& m, Value* addresses) {
  const auto found = words_.find(m.n);
  if (found == words_.end() || found->second.second != 0) return;
  const Adjacent& group = adjacent_[found->second.first];
  Value* in_page = b_.CreateAnd(addresses, Number(addresses, kPageBytes - 1));
  Value* spans = b_.CreateICmpUGT(in_page, Number(addresses, kPageBytes - kPieceBytes));
  Value* any = b_.CreateICmpNE(b_.CreateAnd(Bits(spans), m.lanes), b_.getInt32(0));
  llvm::BasicBlock* together = NewBlock("together");
  llvm::BasicBlock* alone = NewBlock("alone");
  Expect(any, alone, together);
  b_.SetInsertPoint(together);
  RecordPlaces(m, addresses);
  const uint32_t words = static_cast<uint32_t>(group.values.size());
  llvm::Type* piece = llvm::FixedVectorType::get(m.element, words);
  std::vector<Value*> pieces;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    pieces.push_back(b_.CreateAlignedLoad(piece, RecordedPlace(lane, piece),
                                          llvm::Align(m.access.element_bytes)));
  }
  const std::vector<Value*> all = Transposed(pieces, words);
  for (uint32_t k = 0; k < words; ++k) b_.CreateStore(all[k], group.values[k]);
  b_.CreateStore(b_.getTrue(), group.loaded);
  Write(m.Register(0, flow_.operands[m.n]), {Extended(m, all[0]), kVaryingForm});
  b_.CreateBr(m.done);
  b_.SetInsertPoint(alone);
}

// What the first of a group has loaded; goes on where it has not.
void Emitter::TakeLoaded(const Memory& m, llvm::BasicBlock* end) {
  const auto found = words_.find(m.n);
  if (found == words_.end()) return;
  const Adjacent& group = adjacent_[found->second.first];
  if (found->second.second == 0) {
    b_.CreateStore(b_.getFalse(), group.loaded);
    for (llvm::AllocaInst* value : group.values)
      b_.CreateStore(llvm::UndefValue::get(value->getAllocatedType()), value);
    return;
  }
  llvm::BasicBlock* take = NewBlock("take");
  llvm::BasicBlock* alone = NewBlock("alone");
  b_.CreateCondBr(b_.CreateLoad(b_.getInt1Ty(), group.loaded), take, alone);
  b_.SetInsertPoint(take);
  llvm::AllocaInst* value = group.values[found->second.second];
  Value* loaded = b_.CreateLoad(value->getAllocatedType(), value);
  Write(m.Register(0, flow_.operands[m.n]), {Extended(m, loaded), kVaryingForm});
  b_.CreateBr(end);
  b_.SetInsertPoint(alone);
}

}  // namespace softgpu::jit
