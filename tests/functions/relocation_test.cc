#include "functions/relocation.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace functions {
namespace {

constexpr uint64_t kBase = 0x2000'0000'0000, kNow = 0x7000'0000'0000;

TEST(RelocationTest, AnAddressKeepsItsDistanceFromTheBlocksBegin) {
  Relocation relocation;
  relocation.Add(kBase, 0x100, kNow);
  relocation.Add(kBase + 0x1000, 0x100, kNow + 0x5000);
  EXPECT_EQ(relocation.Moved(kBase), kNow);
  EXPECT_EQ(relocation.Moved(kBase + 0xff), kNow + 0xff);
  EXPECT_EQ(relocation.Moved(kBase + 0x1001), kNow + 0x5001);
  for (const uint64_t elsewhere : {kBase - 1, kBase + 0x100, kBase + 0xfff, uint64_t{0}})
    EXPECT_EQ(relocation.Moved(elsewhere), elsewhere);
}

TEST(RelocationTest, ARangeMustLieInOneBlock) {
  Relocation relocation;
  relocation.Add(kBase, 0x100, kNow);
  relocation.Add(kBase + 0x100, 0x100, kNow + 0x5000);
  EXPECT_TRUE(relocation.Holds(kBase, 0x100));
  EXPECT_TRUE(relocation.Holds(kBase + 0xff, 1));
  EXPECT_FALSE(relocation.Holds(kBase, 0x101));
  EXPECT_FALSE(relocation.Holds(kBase + 0x1ff, UINT64_MAX));
  EXPECT_FALSE(relocation.Holds(kBase - 1, 1));
}

TEST(RelocationTest, OnlyWholeWordsThatPointIntoABlockMove) {
  Relocation relocation;
  relocation.Add(kBase, 0x100, kNow);
  std::vector<uint64_t> words = {7, kBase + 8, kBase + 0x100, 0};
  std::vector<std::byte> bytes(words.size() * 8 + 4);
  std::memcpy(bytes.data(), words.data(), words.size() * 8);
  relocation.Move(bytes);
  std::memcpy(words.data(), bytes.data(), words.size() * 8);
  EXPECT_EQ(words, (std::vector<uint64_t>{7, kNow + 8, kBase + 0x100, 0}));
}

}  // namespace
}  // namespace functions
