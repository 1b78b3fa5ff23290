// The stand-ins for ptxas and nvlink: the command lines of Triton and XLA, what they write, and
// what they say when the input is wrong.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

#include "tests/softgpu/driver_test.h"

namespace softgpu::testing {
namespace {

constexpr char kCaller[] = R"(
.extern .func (.param .b32 result) twice(.param .b32 x);
.visible .entry caller(.param .u64 out)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, 21;
  {
    .param .b32 argument;
    .param .b32 returned;
    st.param.b32 [argument], %r1;
    call (returned), twice, (argument);
    ld.param.b32 %r2, [returned];
  }
  st.global.u32 [%rd1], %r2;
  ret;
}
)";
constexpr char kCallee[] = R"(
.visible .func (.param .b32 result) twice(.param .b32 x)
{
  .reg .b32 %r<2>;
  ld.param.u32 %r1, [x];
  add.u32 %r1, %r1, %r1;
  st.param.b32 [result], %r1;
  ret;
}
)";

std::string Text(const std::string& kernels) { return kHeader + kernels; }

struct Output {
  int code;
  std::string text;  // both streams
};

class ToolsTest : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    directory_ =
        std::filesystem::temp_directory_path() / ("softgpu_tools." + std::to_string(getpid()));
    std::filesystem::create_directory(directory_);
  }
  void TearDown() override {
    std::filesystem::remove_all(directory_);
    DriverTest::TearDown();
  }

  // Runs `words` in the test's own directory.
  Output Run(const std::string& words) {
    const std::string command =
        "cd " + directory_.string() + " && " TOOLS_DIR "/" + words + " 2>&1";
    FILE* const pipe = popen(command.c_str(), "r");
    Output output{0, {}};
    for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe))
      output.text += static_cast<char>(c);
    output.code = WEXITSTATUS(pclose(pipe));
    return output;
  }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(directory_ / name, std::ios::binary) << text;
  }
  bool Exists(const std::string& name) { return std::filesystem::exists(directory_ / name); }
  CUresult LoadFile(const std::string& name, CUmodule* module) {
    return cuModuleLoad(module, (directory_ / name).c_str());
  }

  std::filesystem::path directory_;
};

TEST_F(ToolsTest, VersionsAreInTheFormThatCompilersRead) {
  for (const char* const tool : {"ptxas", "nvlink"}) {
    const Output output = Run(std::string(tool) + " --version");
    EXPECT_EQ(output.code, 0);
    EXPECT_TRUE(std::regex_search(output.text, std::regex(R"(release 13\.0)"))) << output.text;
    EXPECT_TRUE(std::regex_search(output.text, std::regex(R"(\bV13\.0\.\d+\b)"))) << output.text;
    EXPECT_EQ(output.text.rfind(std::string(tool) + ": Laneway", 0), 0u) << output.text;
  }
}

TEST_F(ToolsTest, WhatTritonAndXlaRunIsLoaded) {
  Write("in.ptx", Text(kVectorAdd));
  for (const char* const line :
       {"ptxas -lineinfo --fmad=false -v --regAllocOptLevel=2 --gpu-name=sm_90a in.ptx -o out",
        "ptxas -g --opt-level 0 --gpu-name=sm_80 in.ptx -o out",
        "ptxas -lineinfo -suppress-debug-info -v --gpu-name=sm_80 in.ptx -o out",
        "ptxas in.ptx -o out -arch=sm_80 --warn-on-spills -v -O0",
        "ptxas -c -arch sm_80 -O3 --new-in-14=yes -o out in.ptx"}) {
    std::filesystem::remove(directory_ / "out");
    const Output output = Run(line);
    ASSERT_EQ(output.code, 0) << line << "\n" << output.text;
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    ASSERT_OK(LoadFile("out", &module));
    EXPECT_OK(cuModuleGetFunction(&function, module, "vector_add"));
    std::ifstream file(directory_ / "out", std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    ASSERT_OK(cuModuleLoadData(&module, bytes.data()));  // it knows its own size
  }
}

TEST_F(ToolsTest, VerboseTellsOfEachKernel) {
  Write("in.ptx", Text(std::string(kVectorAdd) + kEmpty));
  const Output output = Run("ptxas -v -arch=sm_80 in.ptx -o out");
  EXPECT_NE(output.text.find("ptxas info    : Compiling entry function 'vector_add' for 'sm_80'"),
            std::string::npos)
      << output.text;
  EXPECT_NE(output.text.find("0 bytes spill stores, 0 bytes spill loads"), std::string::npos);
  EXPECT_EQ(Run("ptxas -arch=sm_80 in.ptx -o out").text, "");
}

TEST_F(ToolsTest, WrongPtxIsNamedWithFileAndLineAndNothingIsWritten) {
  Write("bad.ptx", Text(".visible .entry bad()\n{\n  frobnicate.u32 %r1;\n  ret;\n}\n"));
  const Output output = Run("ptxas -arch=sm_80 bad.ptx -o out");
  EXPECT_EQ(output.code, 255);
  EXPECT_EQ(output.text.rfind("ptxas bad.ptx, line 6; ", 0), 0u) << output.text;
  EXPECT_NE(output.text.find("frobnicate"), std::string::npos) << output.text;
  EXPECT_NE(output.text.find("ptxas fatal   : Ptx assembly aborted due to errors\n"),
            std::string::npos);
  EXPECT_FALSE(Exists("out"));
}

TEST_F(ToolsTest, WrongCommandLinesEndInTheVendorsWords) {
  Write("in.ptx", Text(kVectorAdd));
  Write("new.ptx", ".version 8.0\n.target sm_90\n.address_size 64\n");
  const struct {
    const char* line;
    const char* says;
  } cases[] = {
      {"ptxas -arch=sm_80 none.ptx -o out", "Input file 'none.ptx' could not be opened"},
      {"ptxas -arch=sm_80 in.ptx -o /no/such/out",
       "Output file '/no/such/out' could not be opened"},
      {"ptxas -arch=sm_12 in.ptx", "Value 'sm_12' is not defined for option 'gpu-name'"},
      {"ptxas -arch=sm_80 new.ptx -o out", "SM version specified by .target is higher"},
      {"ptxas --bogus in.ptx", "Unknown option 'bogus'"},
      {"ptxas in.ptx -o", "argument expected after '-o'"},
      {"ptxas -v=1 in.ptx", "no argument expected after '-v'"},
      {"ptxas --sanitize=memcheck in.ptx", "Option 'sanitize' is not supported"},
      {"ptxas -o out", "No input files specified"},
      {"ptxas in.ptx in.ptx -o out", "One input at a time"},
  };
  for (const auto& [line, says] : cases) {
    const Output output = Run(line);
    EXPECT_EQ(output.code, 255) << line;
    EXPECT_NE(output.text.find(std::string("ptxas fatal   : ") + says), std::string::npos)
        << line << "\n"
        << output.text;
    EXPECT_FALSE(Exists("out")) << line;
  }
}

TEST_F(ToolsTest, LinkedObjectsCallEachOther) {
  Write("caller.ptx", Text(kCaller));
  Write("callee.ptx", Text(kCallee));
  const Output alone = Run("ptxas -arch=sm_80 caller.ptx -o caller.o");
  EXPECT_EQ(alone.code, 255);
  EXPECT_NE(alone.text.find("Unresolved extern function 'twice'"), std::string::npos) << alone.text;
  ASSERT_EQ(Run("ptxas -c -arch=sm_80 caller.ptx -o caller.o").code, 0);
  ASSERT_EQ(Run("ptxas -c -arch=sm_80 callee.ptx -o callee.o").code, 0);
  const Output linked = Run("nvlink -arch=sm_80 caller.o callee.o -o whole");
  ASSERT_EQ(linked.code, 0) << linked.text;
  CUmodule module = nullptr;
  ASSERT_OK(LoadFile("whole", &module));
  CUfunction function = nullptr;
  ASSERT_OK(cuModuleGetFunction(&function, module, "caller"));
  CUdeviceptr out = 0;
  ASSERT_OK(cuMemAlloc(&out, 4));
  void* parameters[] = {&out};
  ASSERT_OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  int value = 0;
  ASSERT_OK(cuMemcpyDtoH(&value, out, 4));
  EXPECT_EQ(value, 42);
}

TEST_F(ToolsTest, WhatCanNotBeLinkedIsRefused) {
  Write("elf.o", std::string("\177ELF\2\1\1") + std::string(57, '\0'));
  Write("text", "nonsense");
  for (const char* const line :
       {"nvlink -arch=sm_80 elf.o -o out", "nvlink -arch=sm_80 text -o out", "nvlink none -o out",
        "nvlink -arch=sm_80 elf.o", "nvlink -lnone -arch=sm_80 text -o out",
        "nvlink -arch=gpu text -o out", "nvlink -dlto text -o out"}) {
    const Output output = Run(line);
    EXPECT_EQ(output.code, 1) << line;
    EXPECT_EQ(output.text.rfind("nvlink fatal   : ", 0), 0u) << line << "\n" << output.text;
    EXPECT_FALSE(Exists("out")) << line;
  }
}

}  // namespace
}  // namespace softgpu::testing
