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
}

TEST(FrameworksTest, MemoryIsNamedWhereNothingWas) {
  EXPECT_EQ(MemoryVariables({"HOME=/h"}),
            (Environment{"PYTORCH_ALLOC_CONF=backend:cudaMallocAsync",
                         "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async",
                         "TF_GPU_ALLOCATOR=cuda_malloc_async", "LRU=0"}));
  EXPECT_EQ(MemoryVariables({"LRU=1"}).size(), 3u);
  EXPECT_EQ(ReplayVariables({"HOME=/h"}), Environment{"NO_MEMORY_PLANNER=1"});
  EXPECT_EQ(ReplayVariables({"NO_MEMORY_PLANNER="}), Environment{});
}

TEST(FrameworksTest, OnlyAJobOfTheDaemonsContextThatAsksForReplayIsReplayed) {
  ipc::Options options;
  EXPECT_FALSE(Replays(options));
  for (const char* const way : {"auto", "always", "verify", "verify=7"}) {
    options.replay = way;
    EXPECT_TRUE(Replays(options)) << way;
  }
  options.transport = "zmq";
  EXPECT_FALSE(Replays(options));
  options.transport = "ring";
  options.mode = "in-process";
  EXPECT_FALSE(Replays(options));
  options.mode = "contained";
  EXPECT_TRUE(Replays(options));
}

}  // namespace
}  // namespace cli
