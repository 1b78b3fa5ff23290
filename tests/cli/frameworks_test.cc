// What frameworks are told, as a function of the environment that there was.
#include "cli/frameworks.h"

#include <gtest/gtest.h>

namespace cli {
namespace {

using Environment = std::vector<std::string>;

TEST(FrameworksTest, TheToolsAreNamedWhereNothingWas) {
  Environment environment = {"HOME=/h", "PATH=/usr/bin:/bin"};
  UseToolsOfSoftwareGpu("/l/bin", &environment);
  EXPECT_EQ(environment,
            (Environment{"HOME=/h", "PATH=/l/bin:/usr/bin:/bin", "TRITON_PTXAS_PATH=/l/bin/ptxas",
                         "TRITON_PTXAS_BLACKWELL_PATH=/l/bin/ptxas"}));
}

TEST(FrameworksTest, WhatTheUserSetStays) {
  const Environment mine = {"TRITON_PTXAS_PATH=/my/ptxas", "TRITON_PTXAS_BLACKWELL_PATH="};
  Environment environment = mine;
  UseToolsOfSoftwareGpu("/l/bin", &environment);
  EXPECT_EQ(environment, mine);
  environment = {"LRU=1"};
  UseStreamOrderedMemory(&environment);
  EXPECT_EQ(environment.front(), "LRU=1");
  EXPECT_EQ(environment.size(), 4u);
}

}  // namespace
}  // namespace cli
