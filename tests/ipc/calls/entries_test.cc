// entries.inc against cudaTypedefs.h, and cuGetProcAddress's choice.
#include "ipc/calls/vendor.h"

#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>

#include <set>
#include <string>
#include <type_traits>

#include "gtest/gtest.h"
#include "ipc/calls.h"
#include "ipc/calls/proc_address.h"

namespace ipc {
namespace {

// The typedef of each version is the type of the symbol that the table gives for it.
#define ENTRY(base, version, suffix, symbol)                                          \
  static_assert(std::is_same_v<PFN_##base##_v##version##suffix, decltype(&::symbol)>, \
                #symbol " is not version " #version " of " #base);
#include "ipc/calls/entries.inc"
#undef ENTRY

struct Fact {
  const char* base;
  int version;
  bool per_thread;
  const char* symbol;
};
constexpr Fact kFacts[] = {
#define ENTRY(base, version, suffix, symbol) {#base, version, sizeof(#suffix) > 1, #symbol},
#include "ipc/calls/entries.inc"
#undef ENTRY
};

TEST(Entries, EverySymbolHasOneVersion) {
  std::set<std::string_view> symbols, rows;
  for (const Fact& fact : kFacts) EXPECT_TRUE(symbols.insert(fact.symbol).second) << fact.symbol;
  for (const Row& row : RowsOf(Library::kDriver)) rows.insert(row.name);
  EXPECT_EQ(symbols, rows);
}

// Each symbol is found under its base name at its own version; one version earlier it is not.
TEST(Entries, EachVersionIsFoundWhereItBegins) {
  for (const Fact& fact : kFacts) {
    EXPECT_EQ(FindEntry(fact.base, fact.version, fact.per_thread).symbol, fact.symbol);
    EXPECT_NE(FindEntry(fact.base, fact.version - 10, fact.per_thread).symbol, fact.symbol);
    EXPECT_EQ(FindEntry(fact.base, 13000, false).status, EntryStatus::kFound);
  }
}

TEST(Entries, NewestVariantThatTheVersionHad) {
  EXPECT_EQ(FindEntry("cuMemAlloc", 13000, false).symbol, "cuMemAlloc_v2");
  EXPECT_EQ(FindEntry("cuMemAlloc", 3010, false).symbol, "cuMemAlloc");
  EXPECT_EQ(FindEntry("cuCtxCreate", 11030, false).symbol, "cuCtxCreate_v2");
  EXPECT_EQ(FindEntry("cuCtxCreate", 13000, false).symbol, "cuCtxCreate_v4");
  EXPECT_EQ(FindEntry("cuGetProcAddress", 11030, false).symbol, "cuGetProcAddress");
  EXPECT_EQ(FindEntry("cuGetProcAddress", 12000, false).symbol, "cuGetProcAddress_v2");
}

TEST(Entries, PerThreadTwins) {
  EXPECT_EQ(FindEntry("cuMemcpyHtoD", 12000, true).symbol, "cuMemcpyHtoD_v2_ptds");
  EXPECT_EQ(FindEntry("cuMemcpyHtoD", 12000, false).symbol, "cuMemcpyHtoD_v2");
  EXPECT_EQ(FindEntry("cuLaunchKernel", 12000, true).symbol, "cuLaunchKernel_ptsz");
  EXPECT_EQ(FindEntry("cuLaunchKernel", 6050, true).symbol, "cuLaunchKernel");
  EXPECT_EQ(FindEntry("cuMemAlloc", 12000, true).symbol, "cuMemAlloc_v2");
}

TEST(Entries, WhatIsNotThere) {
  EXPECT_EQ(FindEntry("cuNoSuchThing", 13000, false).status, EntryStatus::kNoSuchSymbol);
  EXPECT_EQ(FindEntry("cuMemAlloc_v2", 13000, false).status, EntryStatus::kNoSuchSymbol);
  EXPECT_EQ(FindEntry("", 13000, false).status, EntryStatus::kNoSuchSymbol);
  EXPECT_EQ(FindEntry("cuMemAllocAsync", 11010, false).status, EntryStatus::kVersionTooOld);
  EXPECT_TRUE(FindEntry("cuMemAllocAsync", 11010, false).symbol.empty());
}

}  // namespace
}  // namespace ipc
