// Which options ask NVRTC for machine code, and what the vendor's is asked for instead.
#include <gtest/gtest.h>

#include "softgpu/nvrtc/machine_code.h"

namespace softgpu::nvrtc {
namespace {

using Words = std::vector<std::string>;

TEST(NvrtcOptions, ARealArchitectureBecomesTheVirtualOne) {
  for (const char* const name : {"--gpu-architecture", "-arch", "--gpu-arch"}) {
    const std::string option = name;
    const Options joined = WithoutMachineCode({"-w", option + "=sm_80", "--fmad=false"});
    EXPECT_EQ(joined.words, (Words{"-w", option + "=compute_80", "--fmad=false"}));
    EXPECT_EQ(joined.architecture, 80) << name;
    const Options apart = WithoutMachineCode({option, "sm_90a", "-w"});
    EXPECT_EQ(apart.words, (Words{option, "compute_90a", "-w"}));
    EXPECT_EQ(apart.architecture, 90) << name;
  }
}

TEST(NvrtcOptions, WhatAsksForNoMachineCodeIsPassedOn) {
  for (const Words& words :
       {Words{}, Words{"-arch=compute_80"}, Words{"-arch"}, Words{"-DNAME=sm_80"}, Words{"sm_80"},
        Words{"-arch=sm_80", "-dlto"}, Words{"--dlink-time-opt=true", "-arch=sm_80"},
        Words{"-arch=sm_nothing"}}) {
    const Options options = WithoutMachineCode(words);
    EXPECT_EQ(options.words, words);
    EXPECT_EQ(options.architecture, std::nullopt);
  }
}

TEST(NvrtcOptions, TheLastArchitectureHolds) {
  EXPECT_EQ(WithoutMachineCode({"-arch=sm_80", "-arch=compute_90"}).architecture, std::nullopt);
  EXPECT_EQ(WithoutMachineCode({"-arch=compute_90", "-arch", "sm_86"}).architecture, 86);
}

}  // namespace
}  // namespace softgpu::nvrtc
