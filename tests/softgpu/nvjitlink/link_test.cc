// nvJitLink of the software GPU, through its exported names: what is linked, and what is refused.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <nvJitLink.h>

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "softgpu/driver/fatbin.h"

namespace softgpu {
namespace {

constexpr char kHead[] = ".version 8.0\n.target sm_80\n.address_size 64\n";
constexpr char kTwice[] =
    ".visible .func (.param .b32 r) twice(.param .b32 x)\n"
    "{ .reg .b32 %r<3>; ld.param.u32 %r1, [x]; add.u32 %r2, %r1, %r1;\n"
    "  st.param.b32 [r], %r2; ret; }\n";
constexpr char kKernel[] =
    ".extern .func (.param .b32 r) twice(.param .b32 x);\n"
    ".visible .entry k() { .reg .b32 %r<2>;\n"
    "  { .param .b32 a; .param .b32 b; mov.u32 %r1, 1; st.param.b32 [a], %r1;\n"
    "    call (b), twice, (a); } ret; }\n";

class NvJitLinkTest : public ::testing::Test {
 protected:
  ~NvJitLinkTest() override {
    if (link_ != nullptr) EXPECT_EQ(__nvJitLinkDestroy_13_0(&link_), NVJITLINK_SUCCESS);
  }
  nvJitLinkResult Create(std::vector<const char*> words) {
    return __nvJitLinkCreate_13_0(&link_, static_cast<uint32_t>(words.size()), words.data());
  }
  nvJitLinkResult Add(std::string_view bytes, nvJitLinkInputType type = NVJITLINK_INPUT_PTX) {
    return __nvJitLinkAddData_13_0(link_, type, bytes.data(), bytes.size(), "an input");
  }
  nvJitLinkResult AddPtx(const std::string& body) { return Add(kHead + body); }
  std::string Cubin() {
    size_t size = 0;
    EXPECT_EQ(__nvJitLinkGetLinkedCubinSize_13_0(link_, &size), NVJITLINK_SUCCESS);
    std::string cubin(size, '\0');
    EXPECT_EQ(__nvJitLinkGetLinkedCubin_13_0(link_, cubin.data()), NVJITLINK_SUCCESS);
    return cubin;
  }
  // The PTX in the container that stands for machine code.
  static std::string PtxOf(std::string_view cubin) {
    std::vector<FatbinEntry> entries;
    std::string ptx, error;
    EXPECT_TRUE(ParseFatbinUntrusted(std::as_bytes(std::span(cubin)), &entries, &error)) << error;
    if (entries.size() == 1) EXPECT_TRUE(ExpandUntrusted(entries.front(), &ptx, &error)) << error;
    return ptx;
  }
  std::string Log() {
    size_t size = 0;
    EXPECT_EQ(__nvJitLinkGetErrorLogSize_13_0(link_, &size), NVJITLINK_SUCCESS);
    std::string log(size, '\0');
    EXPECT_EQ(__nvJitLinkGetErrorLog_13_0(link_, log.data()), NVJITLINK_SUCCESS);
    return log;
  }

  nvJitLinkHandle link_ = nullptr;
};

TEST_F(NvJitLinkTest, PtxIsJoinedAndHandedOutInAContainer) {
  ASSERT_EQ(Create({"-arch=sm_80", "-O3", "-lineinfo"}), NVJITLINK_SUCCESS);
  ASSERT_EQ(AddPtx(kTwice), NVJITLINK_SUCCESS);
  ASSERT_EQ(AddPtx(std::string(kKernel) + '\0'), NVJITLINK_SUCCESS);
  ASSERT_EQ(__nvJitLinkComplete_13_0(link_), NVJITLINK_SUCCESS) << Log();
  const std::string ptx = PtxOf(Cubin());
  EXPECT_NE(ptx.find(".entry k"), std::string::npos) << ptx;
  EXPECT_NE(ptx.find("twice"), std::string::npos) << ptx;
  EXPECT_EQ(Log(), "");
}

TEST_F(NvJitLinkTest, AContainerIsAnInputAgain) {
  ASSERT_EQ(Create({"-arch=sm_80"}), NVJITLINK_SUCCESS);
  const std::string container = MakeFatbin(std::string(kHead) + kTwice, 80);
  ASSERT_EQ(Add(container, NVJITLINK_INPUT_CUBIN), NVJITLINK_SUCCESS) << Log();
  ASSERT_EQ(AddPtx(kKernel), NVJITLINK_SUCCESS);
  EXPECT_EQ(__nvJitLinkComplete_13_0(link_), NVJITLINK_SUCCESS) << Log();
}

TEST_F(NvJitLinkTest, WhatIsWrongWithAnInputIsInTheLog) {
  ASSERT_EQ(Create({"-arch=sm_80"}), NVJITLINK_SUCCESS);
  EXPECT_NE(Add("\x7f"
                "ELF, a cubin of the vendor's",
                NVJITLINK_INPUT_CUBIN),
            NVJITLINK_SUCCESS);
  EXPECT_NE(Log().find("only machine code is there"), std::string::npos) << Log();
  ASSERT_EQ(AddPtx(kKernel), NVJITLINK_SUCCESS);
  EXPECT_EQ(__nvJitLinkComplete_13_0(link_), NVJITLINK_ERROR_FINALIZE);
  EXPECT_NE(Log().find("twice"), std::string::npos) << Log();
}

TEST_F(NvJitLinkTest, OptionsAreCheckedAsTheVendorChecksThem) {
  EXPECT_EQ(Create({}), NVJITLINK_ERROR_MISSING_ARCH);
  EXPECT_EQ(Create({"-arch=sm_zero"}), NVJITLINK_ERROR_UNRECOGNIZED_ARCH);
  EXPECT_EQ(Create({"-arch=sm_80", "-o"}), NVJITLINK_ERROR_UNRECOGNIZED_OPTION);
  EXPECT_EQ(Create({"-arch=sm_80", "-ptx"}), NVJITLINK_ERROR_INCOMPATIBLE_OPTIONS);
  EXPECT_EQ(link_, nullptr);
}

TEST_F(NvJitLinkTest, APointerThatIsNoLinkIsRefused) {
  nvJitLinkHandle wild = reinterpret_cast<nvJitLinkHandle>(8);
  size_t size = 0;
  EXPECT_EQ(__nvJitLinkComplete_13_0(wild), NVJITLINK_ERROR_INVALID_INPUT);
  EXPECT_EQ(__nvJitLinkGetLinkedCubinSize_13_0(wild, &size), NVJITLINK_ERROR_INVALID_INPUT);
  EXPECT_EQ(__nvJitLinkDestroy_13_0(&wild), NVJITLINK_ERROR_INVALID_INPUT);
  ASSERT_EQ(Create({"-arch=sm_80"}), NVJITLINK_SUCCESS);
  EXPECT_EQ(__nvJitLinkGetLinkedCubinSize_13_0(link_, nullptr), NVJITLINK_ERROR_INVALID_INPUT);
  EXPECT_EQ(Add(""), NVJITLINK_ERROR_INVALID_INPUT);
}

TEST_F(NvJitLinkTest, LtoIrWithoutItsOptionIsRefused) {
  ASSERT_EQ(Create({"-arch=sm_80"}), NVJITLINK_SUCCESS);
  EXPECT_EQ(Add("any bytes", NVJITLINK_INPUT_LTOIR), NVJITLINK_ERROR_LTO_NOT_ENABLED);
}

// The vendor's library makes PTX of nvcc's LTO-IR, which calls a function that another input has.
TEST_F(NvJitLinkTest, LtoIrIsCompiledByTheVendorsLibraryAndJoinedWithPtx) {
  setenv("LD_LIBRARY_PATH", VENDORS_LIBRARIES, 1);
  std::ifstream file(LTO_FATBIN, std::ios::binary);
  const std::string lto{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  ASSERT_FALSE(lto.empty()) << LTO_FATBIN;
  ASSERT_EQ(Create({"-arch=sm_80", "-lto"}), NVJITLINK_SUCCESS);
  ASSERT_EQ(Add(lto, NVJITLINK_INPUT_FATBIN), NVJITLINK_SUCCESS) << Log();
  ASSERT_EQ(AddPtx(kTwice), NVJITLINK_SUCCESS) << Log();
  const nvJitLinkResult result = __nvJitLinkComplete_13_0(link_);
  if (!VENDORS_LIBRARY_IS_THERE) {
    EXPECT_EQ(result, NVJITLINK_ERROR_NVVM_COMPILE);
    EXPECT_NE(Log().find("install it or leave -lto out"), std::string::npos) << Log();
    return;
  }
  ASSERT_EQ(result, NVJITLINK_SUCCESS) << Log();
  EXPECT_NE(PtxOf(Cubin()).find(".entry k"), std::string::npos);
}

TEST_F(NvJitLinkTest, EachReleasesNamesAreThere) {
  for (const char* const name : {"nvJitLinkCreate", "__nvJitLinkCreate_13_0",
                                 "__nvJitLinkAddFile_13_4", "__nvJitLinkGetInfoLog_13_9"}) {
    EXPECT_NE(dlsym(RTLD_DEFAULT, name), nullptr) << name;
  }
}

}  // namespace
}  // namespace softgpu
