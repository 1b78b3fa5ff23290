// The tables against what the vendor ships: names of the stub library and of the headers.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "gtest/gtest.h"
#include "ipc/calls.h"
#include "ipc/calls/vendor.h"
#include "ipc/calls_text.h"
#include "ipc/roles.h"
#include "ipc/tables.h"

namespace ipc {
namespace {

std::set<std::string> NamesOf(Library library) {
  std::set<std::string> names;
  for (const Row& row : RowsOf(library)) names.insert(std::string(row.name));
  EXPECT_EQ(names.size(), RowsOf(library).size()) << "a name has two rows";
  return names;
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in.good()) << path;
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::set<std::string> Lines(const std::string& text) {
  std::set<std::string> lines;
  std::stringstream in(text);
  for (std::string line; std::getline(in, line);) lines.insert(line);
  return lines;
}

// Every function that a header declares with CUBLASWINAPI.
std::set<std::string> Declared(const std::string& header) {
  const std::string text = ReadFile(std::string(LANEWAY_CUDA_ROOT "/include/") + header);
  static const std::regex kDeclaration("CUBLASWINAPI\\s+(cublas\\w+)\\s*\\(");
  std::set<std::string> names;
  for (std::sregex_iterator it(text.begin(), text.end(), kDeclaration), end; it != end; ++it) {
    names.insert((*it)[1]);
  }
  return names;
}

TEST(Tables, DriverNamesAreThoseOfTheStub) {
  EXPECT_EQ(NamesOf(Library::kDriver),
            Lines(ReadFile(LANEWAY_SOURCE_DIR "/tests/ipc/calls/driver_names.txt")));
}

#ifdef LANEWAY_STUB_LIBRARY  // toolkits from pip have none
TEST(Tables, CommittedNamesAreThoseOfTheInstalledStub) {
  FILE* nm = popen("nm -D --defined-only " LANEWAY_STUB_LIBRARY, "r");
  ASSERT_NE(nm, nullptr);
  std::set<std::string> names;
  char address[32], type[8], name[256];
  while (std::fscanf(nm, "%31s %7s %255s", address, type, name) == 3) names.insert(name);
  ASSERT_EQ(pclose(nm), 0);
  EXPECT_EQ(NamesOf(Library::kDriver), names);
}
#endif

TEST(Tables, CublasNamesAreThoseOfTheHeader) {
  EXPECT_EQ(NamesOf(Library::kCublas), Declared("cublas_api.h"));
}

TEST(Tables, CublasLtNamesAreThoseOfTheHeader) {
  std::set<std::string> declared = Declared("cublasLt.h");
  declared.erase(
      "cublasLtDisableCpuInstructionsSetMask");  // declared; no library of 13.0 exports it
  EXPECT_EQ(NamesOf(Library::kCublasLt), declared);
}

// In the view of vendor.h no macro renames a row: else its type would be another function's.
TEST(Tables, NamesAreTheSameAfterMacroExpansion) {
  struct Name {
    const char* row;
    const char* expanded;
  };
  static constexpr Name kNames[] = {
#define LANEWAY_EXPANDED(name) #name
#define CALL(fn, ...) {#fn, LANEWAY_EXPANDED(fn)},
#include "ipc/calls/cublas.inc"
#include "ipc/calls/cublaslt.inc"
#include "ipc/calls/driver.inc"
#undef CALL
  };
  for (const Name& name : kNames) EXPECT_STREQ(name.row, name.expanded);
}

TEST(Tables, OpcodesStayWhereTheyAre) {
  EXPECT_EQ(static_cast<unsigned>(Op::cuGetErrorString), 0x0000u);
  EXPECT_EQ(static_cast<unsigned>(Op::cublasCreate_v2), 0x1000u);
  EXPECT_EQ(static_cast<unsigned>(Op::cublasLtCreate), 0x2000u);
  EXPECT_EQ(static_cast<unsigned>(Op::Ping), 0x3000u);
  EXPECT_EQ(RowOf(Op::cuLaunchKernel).name, "cuLaunchKernel");
  EXPECT_EQ(OpNamed("cublasSgemm_v2"), Op::cublasSgemm_v2);
  EXPECT_EQ(OpNamed("cuNoSuchThing"), std::nullopt);
  EXPECT_EQ(OpFromUntrusted(0x0fff), std::nullopt);
  EXPECT_EQ(OpFromUntrusted(0xffff), std::nullopt);
  EXPECT_EQ(OpFromUntrusted(0x3000), Op::Ping);
}

TEST(Tables, HashCoversExactlyTheFirstRows) {
  const size_t rows = RowsOf(Library::kLaneway).size();
  std::set<uint64_t> hashes;
  for (size_t n = 0; n <= rows; ++n) hashes.insert(TableHash(Library::kLaneway, n));
  EXPECT_EQ(hashes.size(), rows + 1);
  EXPECT_EQ(TableHash(Library::kLaneway, rows), TableHash(Library::kLaneway, rows + 1000));
}

// What a build looks like that has `rows` fewer calls of its own, or more.
Tables Other(int rows) {
  Tables tables = OwnTables();
  uint32_t& count = tables.rows[static_cast<size_t>(Library::kLaneway)];
  count = static_cast<uint32_t>(static_cast<int>(count) + rows);
  tables.hash[static_cast<size_t>(Library::kLaneway)] =
      rows > 0 ? 0xabc : TableHash(Library::kLaneway, count);
  return tables;
}

TEST(Tables, BuildsUnderstandEachOtherInTheRowsThatBothHave) {
  EXPECT_TRUE(Understands(OwnTables()));
  EXPECT_TRUE(Understands(Other(-3)));
  EXPECT_TRUE(Understands(Other(2)));  // the peer sees that ours are its first
  EXPECT_TRUE(Serves(Other(-3)));
  EXPECT_FALSE(Serves(Other(2)));
  EXPECT_EQ(CommonTables(Other(-3)).rows[3], OwnTables().rows[3] - 3);
  EXPECT_EQ(CommonTables(Other(2)).rows[3], OwnTables().rows[3]);
  EXPECT_EQ(CommonTables(Other(2)).hash[3], OwnTables().hash[3]);
}

TEST(Tables, ARowThatDiffersIsNoticedByWhoeverHasMore) {
  Tables changed = Other(-3);
  ++changed.hash[static_cast<size_t>(Library::kLaneway)];
  EXPECT_FALSE(Understands(changed));
  changed = OwnTables();
  ++changed.hash[static_cast<size_t>(Library::kDriver)];
  EXPECT_FALSE(Understands(changed));
}

TEST(Tables, CallsThatThePeerLacksAreKnown) {
  const size_t last = RowsOf(Library::kLaneway).size() - 1;
  EXPECT_TRUE(Knows(OwnTables(), OpAt(Library::kLaneway, last)));
  EXPECT_FALSE(Knows(Other(-1), OpAt(Library::kLaneway, last)));
  EXPECT_TRUE(Knows(Other(-1), OpAt(Library::kLaneway, last - 1)));
  EXPECT_TRUE(Knows(Other(-1), Op::cublasSgemm_v2));
}

TEST(Tables, EveryDeniedRowHasAReason) {
  for (size_t i = 0; i < kLibraries; ++i) {
    for (const Row& row : RowsOf(static_cast<Library>(i))) {
      EXPECT_EQ(row.route == Route::kDeny, !row.reason.empty()) << row.name;
      EXPECT_FALSE(row.route == Route::kDeny && row.remote) << row.name;
    }
  }
}

TEST(Tables, ParametersThatRolesNameAreValues) {
  for (size_t i = 0; i < kLibraries; ++i) {
    for (const Row& row : RowsOf(static_cast<Library>(i))) {
      for (const Param& param : row.params) {
        const Role& role = param.role;
        if (role.rule != LengthRule::kParam && role.rule != LengthRule::kPitched) continue;
        const size_t named = role.rule == LengthRule::kPitched ? 3 : 1;
        for (size_t j = 0; j < named; ++j) {
          ASSERT_LT(role.length[j], row.params.size()) << row.name;
          EXPECT_EQ(row.params[role.length[j]].role.kind, RoleKind::kValue) << row.name;
        }
      }
    }
  }
}

TEST(Tables, CoveragePageIsCurrent) {
  EXPECT_EQ(ReadFile(LANEWAY_SOURCE_DIR "/docs/coverage.md"), CoverageMarkdown())
      << "make it anew: build/bin/call_tables coverage > docs/coverage.md";
}

TEST(Tables, CallsTextFilters) {
  const std::string text = CallsText("cuMemcpyHtoD_v2");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_NE(text.find("local"), std::string::npos);
}

}  // namespace
}  // namespace ipc
