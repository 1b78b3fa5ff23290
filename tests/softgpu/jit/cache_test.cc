// Files of the cache: whole ones come back, and anything odd is as if it were not there.
#include "softgpu/jit/cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace softgpu::jit {
namespace {

class CacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/softgpu-cache-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    root_ = path;
    setenv("XDG_CACHE_HOME", path, 1);
    directory_ = CacheDirectory();
    ASSERT_FALSE(directory_.empty());
    compiled_.entries = {0, 7, 9};
    compiled_.object = std::string("code\0code", 9);
    StoreCached(directory_, "kernel", compiled_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  bool Loads() {
    Compiled found;
    if (!LoadCached(directory_, "kernel", &found)) return false;
    EXPECT_EQ(found.entries, compiled_.entries);
    EXPECT_EQ(found.object, compiled_.object);
    return true;
  }
  std::string File() const { return directory_ + "/kernel"; }

  std::string root_, directory_;
  Compiled compiled_;
};

TEST_F(CacheTest, WhatIsStoredComesBack) {
  EXPECT_TRUE(Loads());
  Compiled other;
  EXPECT_FALSE(LoadCached(directory_, "another", &other));
  struct stat s;
  ASSERT_EQ(stat(directory_.c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0700u);
}

TEST_F(CacheTest, AFileThatOthersMayWriteIsNotRun) {
  ASSERT_EQ(chmod(File().c_str(), 0620), 0);
  EXPECT_FALSE(Loads());
  ASSERT_EQ(chmod(File().c_str(), 0600), 0);
  EXPECT_TRUE(Loads());
}

TEST_F(CacheTest, ALinkIsNotFollowed) {
  std::filesystem::rename(File(), directory_ + "/elsewhere");
  std::filesystem::create_symlink(directory_ + "/elsewhere", File());
  EXPECT_FALSE(Loads());
}

TEST_F(CacheTest, ADirectoryThatOthersMayWriteIsNotUsed) {
  ASSERT_EQ(chmod(directory_.c_str(), 0777), 0);
  EXPECT_EQ(CacheDirectory(), "");
}

TEST_F(CacheTest, EveryDamagedByteAndEveryCutIsNoticed) {
  std::stringstream whole;
  whole << std::ifstream(File(), std::ios::binary).rdbuf();
  const std::string content = whole.str();
  for (size_t at = 0; at < content.size(); ++at) {
    std::string damaged = content;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    std::ofstream(File(), std::ios::binary | std::ios::trunc) << damaged;
    EXPECT_FALSE(Loads()) << at;
    std::ofstream(File(), std::ios::binary | std::ios::trunc) << content.substr(0, at);
    EXPECT_FALSE(Loads()) << at;
  }
}

TEST(CacheNameTest, TellsProgramsApart) {
  Program program;
  program.code.resize(2);
  const std::string name = CacheName(program, "/nowhere");
  EXPECT_EQ(name, CacheName(program, "/nowhere"));
  EXPECT_EQ(name.size(), 64u);
  EXPECT_EQ(name.find_first_not_of("0123456789abcdef"), std::string::npos);
  program.code[1].imm = 1;
  EXPECT_NE(name, CacheName(program, "/nowhere"));
}

// Four constants take as many bytes as a table of fifteen targets with its length.
TEST(CacheNameTest, TellsConstantsFromATableOfTheSameBytes) {
  Program constants, table;
  constants.constants.resize(4);
  constants.constants[0].offset = 15;
  table.tables.emplace_back(15);
  EXPECT_NE(CacheName(constants, "/nowhere"), CacheName(table, "/nowhere"));
}

}  // namespace
}  // namespace softgpu::jit
