// Joining PTX texts: which symbols merge, stay apart or conflict. The toolkit's ptxas and nvlink,
// which come with nvcc, judge the same texts.
#include "softgpu/ptx/link.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "softgpu/ptx/module.h"

namespace softgpu::ptx {
namespace {

using Outcome = Link::Outcome;

constexpr char kHeader[] = ".version 8.0\n.target sm_80\n.address_size 64\n";

// Kernels that use a variable x, and a function f.
#define READS(kernel)                                                        \
  ".visible .entry " kernel                                                  \
  "(.param .u64 to) { .reg .b32 %r; .reg .b64 %rd; ld.param.u64 %rd, [to]; " \
  "ld.global.u32 %r, [x]; st.global.u32 [%rd], %r; ret; }\n"
#define CALLS(kernel) ".visible .entry " kernel "() { call f; ret; }\n"
#define PASSES(kernel) \
  ".visible .entry " kernel "() { .param .u32 a; st.param.u32 [a], 1; call f, (a); ret; }\n"

struct Case {
  const char* first;
  const char* second;
  Outcome outcome;
  const char* sentence;  // its beginning
};

const Case kCases[] = {
    // Variables.
    {".visible .global .u32 x = 1;" READS("a"), ".visible .global .u32 x = 1;" READS("b"),
     Outcome::kConflict, "Multiple definition of 'x'"},
    {".weak .global .u32 x = 1;" READS("a"), ".weak .global .u32 x = 2;" READS("b"), Outcome::kOk,
     ""},
    {".weak .global .u32 x[1] = {1};" READS("a"), ".weak .global .u32 x[2] = {2, 3};" READS("b"),
     Outcome::kConflict, "Size doesn't match for 'x'"},
    {".visible .global .u32 x = 1;" READS("a"), ".weak .global .u32 x = 2;" READS("b"),
     Outcome::kOk, ""},
    {".weak .global .u32 x = 1;" READS("a"), ".visible .global .u32 x = 2;" READS("b"),
     Outcome::kOk, ""},
    {".weak .global .u32 x[2];" READS("a"), ".visible .global .u32 x = 2;" READS("b"),
     Outcome::kConflict, "Size doesn't match for 'x'"},
    {".common .global .u32 x;" READS("a"), ".common .global .u32 x;" READS("b"), Outcome::kOk, ""},
    {".common .global .u32 x[1];" READS("a"), ".common .global .u32 x[4];" READS("b"), Outcome::kOk,
     ""},
    {".common .global .u32 x;" READS("a"), ".visible .global .u32 x = 2;" READS("b"), Outcome::kOk,
     ""},
    {".visible .global .u32 x = 2;" READS("a"), ".common .global .u32 x;" READS("b"), Outcome::kOk,
     ""},
    {".common .global .u32 x;" READS("a"), ".visible .global .u32 x[4];" READS("b"),
     Outcome::kConflict, "Size doesn't match for 'x'"},
    {".weak .global .u32 x = 2;" READS("a"), ".common .global .u32 x;" READS("b"), Outcome::kOk,
     ""},
    {".global .u32 x = 1;" READS("a"), ".global .u32 x = 2;" READS("b"), Outcome::kOk, ""},
    {".global .u32 x = 1;" READS("a"), ".visible .global .u32 x = 2;" READS("b"), Outcome::kOk, ""},
    {".extern .global .u32 x;" READS("a"), ".visible .global .u32 x = 2;" READS("b"), Outcome::kOk,
     ""},
    {".extern .global .u32 x;" READS("a"), ".weak .global .u32 x = 2;" READS("b"), Outcome::kOk,
     ""},
    {".extern .global .u32 x;" READS("a"), ".common .global .u32 x;" READS("b"), Outcome::kOk, ""},
    {".extern .global .u32 x[];" READS("a"), ".visible .global .u32 x[4];" READS("b"), Outcome::kOk,
     ""},
    {".extern .global .u32 x[4];" READS("a"), ".visible .global .u32 x[2][2];" READS("b"),
     Outcome::kOk, ""},
    {".extern .global .u32 x[4];" READS("a"), ".visible .global .u32 x = 2;" READS("b"),
     Outcome::kConflict, "Size doesn't match for 'x'"},
    {".extern .global .u32 x[4];" READS("a"), ".common .global .u32 x;" READS("b"),
     Outcome::kConflict, "Size doesn't match for 'x'"},
    {".extern .global .u32 x;" READS("a"), ".global .u32 x = 2;" READS("b"), Outcome::kUndefined,
     "Undefined reference to 'x'"},
    {".extern .global .u32 x;", ".visible .entry b() { ret; }", Outcome::kUndefined,
     "Undefined reference to 'x'"},
    {".weak .const .u32 x = 1;", ".weak .global .u32 x = 2;" READS("b"), Outcome::kConflict,
     "Memory space doesn't match for 'x'"},
    {".visible .global .u32 x = 1;" READS("a"), ".visible .func x() { ret; }", Outcome::kConflict,
     "Memory space doesn't match for 'x'"},
    {".global .u32 x = 1;" READS("a"), ".visible .func x() { ret; }", Outcome::kOk, ""},
    // Shared memory.
    {".shared .u32 s; .visible .entry a() { st.shared.u32 [s], 1; ret; }",
     ".shared .u32 s; .visible .entry b() { st.shared.u32 [s], 1; ret; }", Outcome::kOk, ""},
    {".extern .shared .u32 s[]; .visible .entry a() { st.shared.u32 [s], 1; ret; }",
     ".extern .shared .align 16 .u32 s[]; .visible .entry b() { st.shared.u32 [s], 1; ret; }",
     Outcome::kOk, ""},
    {".extern .shared .u32 s; .visible .entry a() { st.shared.u32 [s], 1; ret; }",
     ".visible .shared .u32 s; .visible .entry b() { st.shared.u32 [s], 1; ret; }", Outcome::kOk,
     ""},
    {".visible .shared .u32 s; .visible .entry a() { st.shared.u32 [s], 1; ret; }",
     ".visible .shared .u32 s; .visible .entry b() { st.shared.u32 [s], 1; ret; }",
     Outcome::kConflict, "Multiple definition of 's'"},
    // Kernels and functions.
    {".visible .entry k() { ret; }", ".visible .entry k() { ret; }", Outcome::kConflict,
     "Multiple definition of 'k'"},
    {".weak .entry k() { ret; }", ".weak .entry k() { trap; ret; }", Outcome::kOk, ""},
    {".weak .entry k() { ret; }", ".visible .entry k() { trap; ret; }", Outcome::kOk, ""},
    {".entry k() { ret; }", ".entry k() { ret; }", Outcome::kOk, ""},
    {".visible .func f() { ret; }" CALLS("a"), ".visible .func f() { ret; }" CALLS("b"),
     Outcome::kConflict, "Multiple definition of 'f'"},
    {".func f() { ret; }" CALLS("a"), ".func f() { trap; ret; }" CALLS("b"), Outcome::kOk, ""},
    {".weak .func f() { ret; }" CALLS("a"), ".weak .func f() { trap; ret; }" CALLS("b"),
     Outcome::kOk, ""},
    {".weak .func f() { ret; }" CALLS("a"), ".visible .func f() { trap; ret; }" CALLS("b"),
     Outcome::kOk, ""},
    {".extern .func f();" CALLS("a"), ".visible .func f() { ret; }", Outcome::kOk, ""},
    {".extern .func f()" CALLS("a"), ".visible .func f() { ret; }", Outcome::kOk, ""},
    {".extern .func f();" CALLS("a"), ".func f() { ret; }" CALLS("b"), Outcome::kUndefined,
     "Undefined reference to 'f'"},
    {".extern .func f(); .visible .entry a() { ret; }", ".visible .entry b() { ret; }",
     Outcome::kOk, ""},
    {".extern .func f(); .visible .global .u64 table = f;", ".visible .entry b() { ret; }",
     Outcome::kUndefined, "Undefined reference to 'f'"},
    {".extern .func f(.param .u32 a);" PASSES("a"), ".visible .func f(.param .u64 a) { ret; }",
     Outcome::kConflict, "Prototype doesn't match for 'f'"},
    {".extern .func f();" CALLS("a"), ".visible .func (.param .u32 r) f() { ret; }",
     Outcome::kConflict, "Prototype doesn't match for 'f'"},
    {".visible .entry f() { ret; }", ".visible .func f() { ret; }", Outcome::kConflict,
     "Function 'f' not declared __global__ in all source files"},
};

std::string Text(const char* body) { return std::string(kHeader) + body + "\n"; }

Outcome Join(const std::string& first, const std::string& second, std::string* result) {
  Link link;
  Outcome outcome = link.Add(first, "1.o");
  if (outcome == Outcome::kOk) outcome = link.Add(second, "2.o");
  if (outcome == Outcome::kOk) outcome = link.Finish(result);
  if (outcome != Outcome::kOk) *result = link.error();
  return outcome;
}

std::shared_ptr<const PtxModule> Joined(const std::string& first, const std::string& second) {
  std::string text, log;
  EXPECT_EQ(Join(first, second, &text), Outcome::kOk) << text;
  const std::shared_ptr<const PtxModule> module = PtxModule::Parse(text, &log);
  EXPECT_NE(module, nullptr) << log << text;
  return module;
}

TEST(LinkTest, SymbolsMergeStayApartOrConflict) {
  for (const Case& c : kCases) {
    std::string result;
    EXPECT_EQ(Join(Text(c.first), Text(c.second), &result), c.outcome) << c.first << "\n"
                                                                       << c.second << "\n"
                                                                       << result;
    if (c.outcome != Outcome::kOk) {
      EXPECT_TRUE(result.starts_with(c.sentence)) << result;
    } else {
      std::string log;
      EXPECT_NE(PtxModule::Parse(result, &log), nullptr) << log << result;
    }
  }
}

TEST(LinkTest, LaunchesFromTheDeviceNameTheKernel) {
  std::string result;
  const char* const kernel =
      ".extern .func cudaLaunchDevice(); .visible .entry parent() { call cudaLaunchDevice; ret; }";
  EXPECT_EQ(Join(Text(kernel), Text(".visible .entry b() { ret; }"), &result), Outcome::kUndefined);
  EXPECT_TRUE(result.starts_with("Undefined reference to 'cudaLaunchDevice'")) << result;
  EXPECT_NE(result.find("kernel parent launches kernels from the device"), std::string::npos)
      << result;
}

// The vendor's tools in a directory of the test's own.
class Vendor {
 public:
  Vendor() : directory_(std::filesystem::temp_directory_path() / Name()) {
    std::filesystem::create_directory(directory_);
  }
  ~Vendor() { std::filesystem::remove_all(directory_); }

  // The exit code of ptxas and nvlink over two texts; `said` is all that they print.
  int Join(const std::string& first, const std::string& second, std::string* said) {
    std::ofstream(directory_ / "1.ptx") << first;
    std::ofstream(directory_ / "2.ptx") << second;
    const std::string tools = LANEWAY_CUDA_ROOT "/bin/";
    const std::string command = "cd " + directory_.string() + " && { " + tools +
                                "ptxas -c -arch sm_80 1.ptx -o 1.o && " + tools +
                                "ptxas -c -arch sm_80 2.ptx -o 2.o && " + tools +
                                "nvlink -arch sm_80 1.o 2.o -o joined; } 2>&1";
    FILE* const pipe = popen(command.c_str(), "r");
    for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) *said += static_cast<char>(c);
    return pclose(pipe);
  }

 private:
  static std::string Name() { return "ptx_link." + std::to_string(getpid()); }
  const std::filesystem::path directory_;
};

TEST(LinkTest, TheVendorsLinkerJudgesTheSame) {
  Vendor vendor;
  for (const Case& c : kCases) {
    std::string said;
    const int code = vendor.Join(Text(c.first), Text(c.second), &said);
    EXPECT_EQ(code == 0, c.outcome == Outcome::kOk) << c.first << "\n" << c.second << "\n" << said;
    EXPECT_NE(said.find(c.sentence), std::string::npos) << c.sentence << "\n" << said;
  }
}

const Variable* FindVariable(const PtxModule& module, const std::string& name) {
  for (const Variable& variable : module.variables()) {
    if (variable.name == name) return &variable;
  }
  return nullptr;
}

uint32_t InitialValue(const Variable& variable) {
  uint32_t value = 0;
  std::memcpy(&value, variable.init.data(), std::min<size_t>(4, variable.init.size()));
  return value;
}

TEST(LinkTest, TheStrongestDefinitionGivesTheValue) {
  const char* const kWeak = ".weak .global .align 4 .u32 x = 7;";
  const char* const kStrong = ".visible .global .align 4 .u32 x = 8;";
  const char* const kCommon = ".common .global .align 4 .u32 x;";
  const struct {
    const char *first, *second;
    uint32_t value;
  } rows[] = {{kWeak, kStrong, 8},
              {kStrong, kWeak, 8},
              {kCommon, kStrong, 8},
              {kStrong, kCommon, 8},
              {kWeak, kCommon, 7},
              {kCommon, kWeak, 7},
              {kWeak, ".weak .global .align 4 .u32 x = 9;", 7}};
  for (const auto& row : rows) {
    const std::shared_ptr<const PtxModule> module = Joined(Text(row.first), Text(row.second));
    ASSERT_EQ(module->variables().size(), 1u);
    EXPECT_EQ(InitialValue(module->variables()[0]), row.value) << row.first << row.second;
  }
}

TEST(LinkTest, TheLargestCommonAndTheStrictestAlignmentStay) {
  const char* const kSmall = ".common .global .align 64 .u32 x[2];";
  const char* const kLarge = ".common .global .align 4 .u32 x[8];";
  for (const bool small_first : {true, false}) {
    const std::shared_ptr<const PtxModule> module =
        small_first ? Joined(Text(kSmall), Text(kLarge)) : Joined(Text(kLarge), Text(kSmall));
    ASSERT_EQ(module->variables().size(), 1u);
    EXPECT_EQ(module->variables()[0].bytes, 32u);
    EXPECT_EQ(module->variables()[0].align, 64u);
  }
}

TEST(LinkTest, StaticVariablesStayApartUnderTheirFirstName) {
  const std::shared_ptr<const PtxModule> module =
      Joined(Text(".global .u32 x = 1;" READS("a")), Text(".global .u32 x = 2;" READS("b")));
  ASSERT_EQ(module->variables().size(), 2u);
  EXPECT_EQ(InitialValue(*FindVariable(*module, "x")), 1u);
  const Variable& other = module->variables()[module->variables()[0].name == "x"];
  EXPECT_EQ(InitialValue(other), 2u);
}

// A program asks for the name that it exports.
TEST(LinkTest, AnExportedNameIsNotAStaticOne) {
  const std::string here = Text(".global .u32 x = 1;" READS("a"));
  const std::string exported = Text(".visible .global .u32 x = 2;" READS("b"));
  for (const bool first : {true, false}) {
    const std::shared_ptr<const PtxModule> module =
        first ? Joined(here, exported) : Joined(exported, here);
    EXPECT_EQ(InitialValue(*FindVariable(*module, "x")), 2u);
  }
}

// One declaration may name several variables; each goes its own way.
TEST(LinkTest, NamesOfOneDeclarationPart) {
  const std::shared_ptr<const PtxModule> module = Joined(
      Text(".weak .global .u32 x[2] = {1, 2}, y = 3;"), Text(".visible .global .u32 y = 4;"));
  EXPECT_EQ(InitialValue(*FindVariable(*module, "x")), 1u);
  EXPECT_EQ(InitialValue(*FindVariable(*module, "y")), 4u);
  EXPECT_EQ(module->variables().size(), 2u);
}

TEST(LinkTest, TheJoinedModuleHasTheNewestHeader) {
  std::string text;
  ASSERT_EQ(
      Join(".version 7.1\n.target sm_70\n.address_size 64\n.visible .entry a() { ret; }",
           ".version 9.0\n.target sm_90a, debug\n.address_size 64\n.visible .entry b() { ret; "
           "}",
           &text),
      Outcome::kOk);
  EXPECT_TRUE(text.starts_with(".version 9.0\n.target sm_90a\n")) << text;
}

// Numbers of source files are each text's own.
TEST(LinkTest, SourceFilesKeepTheirLines) {
  std::string text;
  const char* const kBody = "() {\n.loc 1 5 3\nret;\n}\n";
  ASSERT_EQ(
      Join(Text((std::string(".file 1 \"one.cu\"\n.visible .entry a") + kBody).c_str()),
           Text((std::string(".file 1 \"two.cu\"\n.visible .entry b") + kBody).c_str()), &text),
      Outcome::kOk);
  EXPECT_NE(text.find(".file 1 \"one.cu\""), std::string::npos) << text;
  EXPECT_NE(text.find(".file 3 \"two.cu\""), std::string::npos) << text;
  EXPECT_NE(text.find(".loc 3 5 3"), std::string::npos) << text;
}

TEST(LinkTest, OneTextIsReturnedAsItCame) {
  Link link;
  const std::string text = Text("// a remark\n.visible .entry a() { ret; }");
  ASSERT_EQ(link.Add(text, "a"), Outcome::kOk);
  std::string joined;
  ASSERT_EQ(link.Finish(&joined), Outcome::kOk);
  EXPECT_EQ(joined, text);
}

TEST(LinkTest, ABrokenTextIsRefusedWithItsLine) {
  for (const char* body :
       {".visible .entry a() { ret;", ".visible .global .u32 x[", ".visible .func f(.param .u32 a",
        ".global .u32 = 1;", ".global .u32 x = {1, 2;", ".visible .global .u32 x[9999999999999];",
        ".file one", ".visible .entry .u32() { ret; }", ".func .u32() { ret; }",
        ".visible .global .u32 .u32;"}) {
    Link link;
    EXPECT_EQ(link.Add(Text(body), "a"), Outcome::kBadText) << body;
    EXPECT_NE(link.error().find(", line "), std::string::npos) << link.error();
    EXPECT_NE(link.error().find("; fatal   : "), std::string::npos) << link.error();
  }
}

}  // namespace
}  // namespace softgpu::ptx
