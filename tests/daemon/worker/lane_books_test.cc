// LaneBooks against a model that looks at every unit of a small lane, over random calls.
#include "daemon/worker/lane_books.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <utility>

#include "tests/harness/seed.h"

namespace worker {
namespace {

constexpr uint64_t kBookUnits = 24;

struct Span {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  bool Has(uint64_t unit) const { return unit >= offset && unit < offset + bytes; }
  bool Meets(const Span& other) const {
    for (uint64_t unit = 0; unit < kBookUnits; ++unit)
      if (Has(unit) && other.Has(unit)) return true;
    return false;
  }
};

class Model {
 public:
  explicit Model(uint64_t seed) : random_(seed) {}

  uint64_t Below(uint64_t bound) { return random_() % bound; }
  Span AnySpan(uint64_t bytes_max) {
    const uint64_t offset = Below(kBookUnits);
    return {offset, 1 + Below(std::min(bytes_max, kBookUnits - offset))};
  }

  void KeepSome() {
    const Span span = AnySpan(5);
    if (KeptUnits(span) != 0) return;
    // What is kept where pinned blocks lie is kept for a block.
    const bool for_block = !IsSpare(span);
    if (for_block && blocks_.count(span.offset) != 0) return;
    const Extent extent{Below(4) == 0 ? 0 : ++ids_, span.bytes};
    books_.Keep(span.offset, extent);
    kept_[span.offset] = {span, extent.id};
    if (!for_block) return;
    blocks_[span.offset] = {span, false};
    books_.AddBlock(span.offset, span.bytes);
  }
  void AddSome() {
    const Span block = AnySpan(7);
    if (blocks_.count(block.offset) != 0) return;
    const bool pins = Below(3) == 0;
    if (!pins && KeptUnits(block) != block.bytes) return;  // as the lane's table has it
    blocks_[block.offset] = {block, pins};
    pins ? books_.Pin(block.offset, block.bytes) : books_.AddBlock(block.offset, block.bytes);
  }
  void DropSome() {
    const uint64_t offset = Below(kBookUnits);
    EXPECT_EQ(books_.Drop(offset), blocks_.erase(offset) != 0);
  }
  // Parts of a lane without gaps. A set of spares can go when no part is left half kept; the union
  // of two such sets is one, too, so the largest is unique.
  void TakeSome() {
    std::vector<Piece> parts;
    for (uint64_t at = 0; at < kBookUnits && Below(8) != 0;) {
      parts.push_back({at, {++ids_, std::min(1 + Below(6), kBookUnits - at)}});
      at += parts.back().extent.bytes;
    }
    std::vector<uint64_t> spares;
    for (const std::pair<const uint64_t, Entry>& entry : kept_)
      if (IsSpare(entry.second.span) && entry.second.id != 0) spares.push_back(entry.first);
    std::vector<uint64_t> most;
    for (uint64_t chosen = 0; chosen < uint64_t{1} << spares.size(); ++chosen) {
      std::vector<uint64_t> set;
      for (size_t i = 0; i < spares.size(); ++i)
        if ((chosen >> i & 1) != 0) set.push_back(spares[i]);
      if (set.size() > most.size() && CanAllGo(set, parts)) most = set;
    }
    std::vector<uint64_t> taken;
    for (const Piece& piece : books_.TakeSpares(parts)) taken.push_back(piece.address);
    EXPECT_EQ(taken, most);
    for (const uint64_t offset : taken) kept_.erase(offset);
  }

  void Check() {
    const Span span = AnySpan(kBookUnits);
    EXPECT_EQ(books_.KeptBytes(span.offset, span.bytes), KeptUnits(span));
    EXPECT_EQ(books_.Keeps(span.offset, span.bytes), KeptUnits(span) != 0);
    uint64_t end = span.offset + 1;
    while (end < span.offset + span.bytes && !IsEdge(end)) ++end;
    EXPECT_EQ(books_.EndAtEdge(span.offset, span.offset + span.bytes), end);
    bool spare = false, pinned = false;
    uint64_t mapped = 0;
    for (const std::pair<const uint64_t, Entry>& entry : kept_) {
      spare = spare || IsSpare(entry.second.span);
      if (entry.second.id != 0) mapped += entry.second.span.bytes;
    }
    for (const std::pair<const uint64_t, Block>& block : blocks_)
      pinned = pinned || block.second.pins;
    EXPECT_EQ(books_.has_spare(), spare);
    EXPECT_EQ(books_.is_pinned(), pinned);
    EXPECT_EQ(books_.MappedBytes(), mapped);
  }

 private:
  struct Entry {
    Span span;
    uint64_t id = 0;
  };
  struct Block {
    Span span;
    bool pins = false;
  };

  uint64_t KeptUnits(const Span& span) const {
    uint64_t units = 0;
    for (uint64_t unit = 0; unit < kBookUnits; ++unit) {
      for (const std::pair<const uint64_t, Entry>& entry : kept_)
        units += span.Has(unit) && entry.second.span.Has(unit) ? 1 : 0;
    }
    return units;
  }
  bool IsEdge(uint64_t at) const {
    return std::any_of(kept_.begin(), kept_.end(), [at](const auto& entry) {
      const Span& span = entry.second.span;
      return at == span.offset || at == span.offset + span.bytes;
    });
  }
  bool IsSpare(const Span& kept) const {
    return std::none_of(blocks_.begin(), blocks_.end(),
                        [&kept](const auto& block) { return block.second.span.Meets(kept); });
  }
  bool CanAllGo(const std::vector<uint64_t>& going, const std::vector<Piece>& parts) const {
    for (const Piece& part : parts) {
      const Span place{part.address, part.extent.bytes};
      bool goes = false, stays = false;
      for (const std::pair<const uint64_t, Entry>& entry : kept_) {
        if (!place.Meets(entry.second.span)) continue;
        const bool chosen = std::count(going.begin(), going.end(), entry.first) != 0;
        (chosen ? goes : stays) = true;
      }
      if (goes && stays) return false;
    }
    return true;
  }

  std::mt19937_64 random_;
  uint64_t ids_ = 0;
  LaneBooks books_;
  std::map<uint64_t, Entry> kept_;
  std::map<uint64_t, Block> blocks_;
};

TEST(LaneBooksTest, AgreesWithEveryUnitOverRandomCalls) {
  const uint64_t seed = harness::Seed();
  for (uint64_t round = 0; round < 300 && !::testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE(::testing::Message() << "round " << round);
    Model model(seed + round);
    for (int step = 0; step < 60; ++step) {
      switch (model.Below(8)) {
        case 0:
        case 1:
        case 2:
          model.KeepSome();
          break;
        case 3:
        case 4:
          model.AddSome();
          break;
        case 5:
          model.TakeSome();
          break;
        default:
          model.DropSome();
      }
      model.Check();
    }
  }
}

TEST(LaneBooksTest, WhatIsMappedIsCountedBesideWhatIsKept) {
  LaneBooks books;
  books.NoteMapped(0, 4);
  books.Keep(4, {7, 2});
  EXPECT_TRUE(books.IsMapped(0));
  EXPECT_EQ(books.MappedBytes(), 6u);
  books.Replace(4, {0, 2});  // on the host
  EXPECT_EQ(books.MappedBytes(), 4u);
  EXPECT_TRUE(books.NoteUnmapped(0));
  EXPECT_FALSE(books.NoteUnmapped(0));
  EXPECT_EQ(books.MappedBytes(), 0u);
}

}  // namespace
}  // namespace worker
