// Which width is chosen, on libraries that are modelled: how a column is added is a number that
// depends on the call and the place, and two calls agree where it is the same everywhere.
#include "serve/engine/gemm_width.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/harness/seed.h"

namespace serve::engine {
namespace {

// How the library adds column `place` of a call of `columns`.
using Library = std::function<int(int32_t columns, int32_t place)>;

GemmProbe ProbeOf(const Library& library, std::vector<int32_t>* calls = nullptr) {
  return [library, calls](int32_t width, int32_t columns) -> absl::StatusOr<bool> {
    if (calls != nullptr) calls->push_back(columns);
    const int way = library(width, 0);
    for (int32_t place = 0; place < std::max(width, columns); ++place) {
      if (place < width && library(width, place) != way) return false;
      if (place < columns && library(columns, place) != way) return false;
    }
    return true;
  };
}

TEST(GemmWidthTest, LibraryThatNeverDiffersNeedsNoPadding) {
  const GemmWidth width = *ChooseGemmWidth(300, ProbeOf([](int32_t, int32_t) { return 0; }));
  EXPECT_EQ(width.columns, 1);
  EXPECT_TRUE(width.multiples);
  EXPECT_EQ(width.Padded(7), 7);
  EXPECT_EQ(width.OfCall(7), 7);
}

// Narrow calls are added in another way, and so is what is left over beside groups of eight.
TEST(GemmWidthTest, NarrowCallsAndRemaindersAreAvoided) {
  const Library library = [](int32_t columns, int32_t place) {
    if (columns <= 17) return 1;
    return place >= columns / 8 * 8 ? 2 : 0;
  };
  const GemmWidth width = *ChooseGemmWidth(256, ProbeOf(library));
  EXPECT_EQ(width.columns, 24);
  EXPECT_TRUE(width.multiples);
  EXPECT_EQ(width.Padded(1), 24);
  EXPECT_EQ(width.Padded(33), 48);
  EXPECT_EQ(width.OfCall(48), 48);
}

TEST(GemmWidthTest, CallsOfOneWidthWhereNoMultiplesAgree) {
  const Library library = [](int32_t columns, int32_t) { return columns; };
  const GemmWidth width = *ChooseGemmWidth(256, ProbeOf(library));
  EXPECT_EQ(width.columns, 16);
  EXPECT_FALSE(width.multiples);
  EXPECT_EQ(width.Padded(17), 32);
  EXPECT_EQ(width.OfCall(32), 16);
}

// OpenBLAS on processors with AVX2: columns go by twelve, whose first six are added in another way,
// then by eight, by four and one by one.
TEST(GemmWidthTest, CallsOfEightWhereTwelveColumnsAreATile) {
  const Library library = [](int32_t columns, int32_t place) {
    if (place < columns / 12 * 12) return place % 12 < 6 ? 12 : 1;
    const int32_t rest = columns % 12;
    if (rest >= 8 && place % 12 < 8) return 8;
    return rest < 8 && place % 12 < rest / 4 * 4 ? 4 : 1;
  };
  const GemmWidth width = *ChooseGemmWidth(256, ProbeOf(library));
  EXPECT_EQ(width.columns, 8);
  EXPECT_FALSE(width.multiples);
}

// A tile of twelve that adds in one way.
TEST(GemmWidthTest, WidthsThatAreNoPowersOfTwo) {
  const Library library = [](int32_t columns, int32_t place) {
    return place < columns / 12 * 12 ? 12 : place % 12;
  };
  const GemmWidth width = *ChooseGemmWidth(256, ProbeOf(library));
  EXPECT_EQ(width.columns, 12);
  EXPECT_TRUE(width.multiples);
}

TEST(GemmWidthTest, SingleColumnsWherePlacesDiffer) {
  const Library library = [](int32_t columns, int32_t place) { return columns * 1000 + place; };
  const GemmWidth width = *ChooseGemmWidth(256, ProbeOf(library));
  EXPECT_EQ(width.columns, 1);
  EXPECT_FALSE(width.multiples);
}

// Code that is for one number of columns alone, and not for a multiple of 16.
TEST(GemmWidthTest, EachCallIsTried) {
  const Library library = [](int32_t columns, int32_t) { return columns == 24 ? 1 : 0; };
  const GemmWidth width = *ChooseGemmWidth(256, ProbeOf(library));
  EXPECT_EQ(width.columns, 16);
  EXPECT_TRUE(width.multiples);
}

// A kernel for large calls alone is found, too: the widest call is always tried.
TEST(GemmWidthTest, TheWidestCallIsTried) {
  std::vector<int32_t> calls;
  const Library library = [](int32_t columns, int32_t) { return columns > 1000 ? 1 : 0; };
  const GemmWidth width = *ChooseGemmWidth(1001, ProbeOf(library, &calls));
  EXPECT_EQ(*std::max_element(calls.begin(), calls.end()), 1056);  // multiples of 96
  EXPECT_FALSE(width.multiples);
}

TEST(GemmWidthTest, FailureOfTheProbeIsTold) {
  const GemmProbe probe = [](int32_t, int32_t) { return absl::UnavailableError("lost"); };
  EXPECT_EQ(ChooseGemmWidth(8, probe).status(), absl::UnavailableError("lost"));
}

// On libraries that add in other ways below a random number of columns and in random remainders,
// all calls of the chosen width add in one way.
TEST(GemmWidthTest, ChosenCallsAgreeOnRandomLibraries) {
  std::mt19937_64 random(harness::Seed());
  for (int round = 0; round < 500; ++round) {
    const auto below = [&](uint64_t end) { return static_cast<int32_t>(random() % end); };
    const int32_t first = below(40), group = 1 << below(5), max = 1 + below(64);
    const Library library = [=](int32_t columns, int32_t place) {
      return columns < first ? columns % 7 : place >= columns / group * group ? 100 : 0;
    };
    const GemmWidth width = *ChooseGemmWidth(max, ProbeOf(library));
    const int way = library(width.OfCall(width.Padded(1)), 0);
    for (int32_t wanted = 1; wanted <= max; ++wanted) {
      const int32_t call = width.OfCall(width.Padded(wanted));
      for (int32_t place = 0; place < call; ++place)
        ASSERT_EQ(library(call, place), way) << "width " << width.columns << ", call " << call;
    }
  }
}

}  // namespace
}  // namespace serve::engine
