// What functions of cuBLAS touch: for small random arguments the computed region ends where a plain
// loop over the definition of the function does, and the pieces hold all that the loop touches.
#include "ipc/calls/blas_operands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>

#include "ipc/calls.h"
#include "ipc/roles.h"
#include "tests/ipc/calls/blas_loops.h"

namespace ipc::blas {
namespace {

void ExpectHoldsAll(const Region& region, const std::set<int64_t>& touched, int64_t bytes) {
  // Memory that is only what was touched must do: no piece may reach beyond what a row holds.
  for (const int64_t offset : touched) {
    bool held = false;
    for (int64_t b = 0; b < region.batch && !held; ++b) {
      for (int64_t j = 0; j < region.pieces && !held; ++j) {
        const int64_t from = std::max(j * region.piece_step, region.begin) + b * region.batch_step;
        const int64_t to = std::min(j * region.piece_step + region.piece_bytes, region.end) +
                           b * region.batch_step;
        held = offset * bytes >= from && (offset + 1) * bytes <= to;
      }
    }
    ASSERT_TRUE(held) << offset;
  }
}

TEST(BlasOperandsTest, RegionsEndWhereLoopsDo) {
  std::mt19937 random(11);
  for (const Loop& loop : Loops()) {
    SCOPED_TRACE(loop.function);
    const Family* const family = FamilyOf(loop.function);
    ASSERT_NE(family, nullptr);
    for (int round = 0; round < 400; ++round) {
      Given given;
      Touched touched;
      loop.draw(&random, &given);
      loop.run(given, &touched);
      for (const Operand& operand : family->all()) {
        const int64_t bytes = int64_t{1} << Draw(&random, 0, 4);
        const Region region = RegionOf(*family, operand, bytes, given);
        const std::set<int64_t>& offsets = touched[operand.parameter];
        SCOPED_TRACE("parameter " + std::to_string(operand.parameter));
        ASSERT_EQ(region.empty(), offsets.empty());
        if (offsets.empty()) continue;
        const int64_t last = (region.batch - 1) * region.batch_step;
        ASSERT_EQ(region.begin + std::min<int64_t>(last, 0), *offsets.begin() * bytes);
        ASSERT_EQ(region.end + std::max<int64_t>(last, 0), (*offsets.rbegin() + 1) * bytes);
        ExpectHoldsAll(region, offsets, bytes);
      }
    }
  }
}

// Every function of the table that names device memory is of a family, but for those that only
// keep an address.
TEST(BlasOperandsTest, EveryFunctionHasARow) {
  for (const Row& row : RowsOf(Library::kCublas)) {
    if (!row.remote || row.name == "cublasSetWorkspace_v2") continue;
    const Family* const family = FamilyOf(row.name);
    for (size_t i = 0; i < row.params.size(); ++i) {
      const RoleKind kind = row.params[i].role.kind;
      if (kind != RoleKind::kDevicePtr && kind != RoleKind::kResult) continue;
      ASSERT_NE(family, nullptr) << row.name;
      const std::span<const Operand> operands = family->all();
      EXPECT_TRUE(std::any_of(operands.begin(), operands.end(),
                              [i](const Operand& operand) { return operand.parameter == i; }))
          << row.name << ", parameter " << i;
    }
    if (family == nullptr) continue;
    // And the row is this function's: its pointers are pointers, its numbers are numbers.
    for (const Operand& operand : family->all()) {
      ASSERT_LT(operand.parameter, row.params.size()) << row.name;
      const RoleKind kind = row.params[operand.parameter].role.kind;
      EXPECT_TRUE(kind == RoleKind::kDevicePtr || kind == RoleKind::kResult ||
                  kind == RoleKind::kScalar)
          << row.name << ", parameter " << int{operand.parameter};
      for (const uint8_t number : {operand.rows.first, operand.rows.second, operand.columns.first,
                                   operand.columns.second, operand.step, operand.lower,
                                   operand.upper, operand.type, operand.count, operand.stride}) {
        if (number == kNone) continue;
        ASSERT_LT(number, row.params.size()) << row.name;
        EXPECT_EQ(row.params[number].role.kind, RoleKind::kValue)
            << row.name << ", parameter " << int{number};
      }
    }
  }
}

TEST(BlasOperandsTest, WhatNoAddressReachesIsNotCountable) {
  const Family* const family = FamilyOf("cublasScopy_v2_64");
  Given given;
  given[1] = INT64_MAX;
  given[3] = INT64_MIN;
  given[5] = 1;
  EXPECT_FALSE(RegionOf(*family, family->operands[0], 4, given).countable);
  const auto everything = [](uint64_t, uint64_t) { return true; };
  EXPECT_FALSE(Reaches(RegionOf(*family, family->operands[0], 4, given), 0x1000, everything));
  // Down to below address 0, or around the end.
  given[1] = 2;
  given[3] = int64_t{1} << 58;
  EXPECT_FALSE(
      Reaches(RegionOf(*family, family->operands[0], 4, given), UINT64_MAX - 64, everything));
}

// Columns with gaps between them may lie in different allocations.
TEST(BlasOperandsTest, GapsNeedNoMemory) {
  const Family* const family = FamilyOf("cublasSger_v2");
  Given given;
  given[1] = 4;
  given[2] = 3;
  given[5] = given[7] = 1;
  given[9] = 1000;
  const Region region = RegionOf(*family, family->operands[3], 4, given);
  const auto columns = [](uint64_t address, uint64_t bytes) {
    return (address - 0x10000) % 4000 + bytes <= 16;
  };
  EXPECT_TRUE(Reaches(region, 0x10000, columns));
  EXPECT_FALSE(Reaches(region, 0x10004, columns));
}

}  // namespace
}  // namespace ipc::blas
