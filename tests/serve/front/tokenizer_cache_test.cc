// Directories of tokenizers: whole, private, few, and there for as long as a server holds them.
#include "serve/front/tokenizer_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/harness/seed.h"

namespace serve::front {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

TokenizerFiles Files(uint64_t number) {
  return {absl::StrCat("{\"number\": ", number, "}"), absl::StrCat("{\"of\": ", number, "}"),
          absl::StrCat("{\"sizes\": ", number, "}")};
}

std::string TextAt(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

unsigned ModeOf(const std::string& path) {
  struct stat s = {};
  EXPECT_EQ(stat(path.c_str(), &s), 0) << path;
  return s.st_mode & 0777;
}

bool IsWhole(const std::string& directory, const TokenizerFiles& files) {
  return TextAt(directory + "/tokenizer.json") == files.tokenizer_json &&
         TextAt(directory + "/tokenizer_config.json") == files.tokenizer_config_json &&
         TextAt(directory + "/config.json") == files.config_json;
}

class TokenizerCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/tokenizer-cache-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    root_ = path;
    setenv("XDG_CACHE_HOME", path, 1);
    const absl::StatusOr<std::string> cache = TokenizerCacheDirectory();
    ASSERT_TRUE(cache.ok()) << cache.status();
    cache_ = *cache;
  }
  void TearDown() override { fs::remove_all(root_); }

  KeptTokenizer Keep(uint64_t number) {
    absl::StatusOr<KeptTokenizer> kept = KeepTokenizer(cache_, Files(number));
    EXPECT_TRUE(kept.ok()) << kept.status();
    return *std::move(kept);
  }
  std::string WhyNot(uint64_t number) {
    return std::string(KeepTokenizer(cache_, Files(number)).status().message());
  }
  ptrdiff_t Count() const { return std::distance(fs::directory_iterator(cache_), {}); }

  std::string root_, cache_;
};

TEST_F(TokenizerCacheTest, FilesAreTheirOwnersAlone) {
  const std::string directory = Keep(1).directory();
  EXPECT_TRUE(IsWhole(directory, Files(1)));
  EXPECT_EQ(ModeOf(cache_), 0700u);
  EXPECT_EQ(ModeOf(directory), 0700u);
  EXPECT_EQ(ModeOf(directory + "/tokenizer.json"), 0600u);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory), {}), 3);
}

TEST_F(TokenizerCacheTest, ModelsMeetOnlyWhereTheirTokenizersAreEqual) {
  const KeptTokenizer first = Keep(1), other = Keep(2), again = Keep(1);
  EXPECT_EQ(first.directory(), again.directory());
  EXPECT_NE(first.directory(), other.directory());
  // The same bytes, cut elsewhere.
  TokenizerFiles cut = Files(1);
  cut.tokenizer_config_json = cut.tokenizer_json.back() + cut.tokenizer_config_json;
  cut.tokenizer_json.pop_back();
  EXPECT_NE(KeepTokenizer(cache_, cut)->directory(), first.directory());
  TokenizerFiles resized = Files(1);
  resized.config_json = Files(2).config_json;
  EXPECT_NE(KeepTokenizer(cache_, resized)->directory(), first.directory());
}

TEST_F(TokenizerCacheTest, WhatIsNotWholeIsWrittenAgain) {
  const std::string directory = Keep(1).directory(), file = directory + "/tokenizer.json";
  std::ofstream(file, std::ios::trunc) << "{\"number\": 7}";
  (void)Keep(1);
  EXPECT_TRUE(IsWhole(directory, Files(1)));
  ASSERT_EQ(chmod(file.c_str(), 0620), 0);
  (void)Keep(1);
  EXPECT_EQ(ModeOf(file), 0600u);
  fs::rename(file, root_ + "/elsewhere");
  fs::create_symlink(root_ + "/elsewhere", file);
  (void)Keep(1);
  EXPECT_FALSE(fs::is_symlink(file));
  for (const char* const name : {"/tokenizer_config.json", "/config.json"}) {
    fs::remove(directory + name);
    (void)Keep(1);
    EXPECT_TRUE(IsWhole(directory, Files(1)));
  }
}

TEST_F(TokenizerCacheTest, TheOldestGoUnlessTheyAreHeld) {
  const KeptTokenizer held = Keep(0);
  const std::string oldest = Keep(1).directory();
  std::ofstream(oldest + "/tokenizer.json.1.new") << "left by a server that was killed";
  for (uint64_t i = 2; i < 2 + kTokenizersMax; ++i) {
    for (const fs::directory_entry& entry : fs::directory_iterator(cache_))
      fs::last_write_time(entry, fs::last_write_time(entry) - std::chrono::seconds(1));
    (void)Keep(i);
  }
  EXPECT_FALSE(fs::exists(oldest));
  EXPECT_TRUE(IsWhole(held.directory(), Files(0)));
  EXPECT_EQ(Count(), static_cast<ptrdiff_t>(kTokenizersMax) + 1);
}

TEST_F(TokenizerCacheTest, WhatCannotBeWrittenIsTold) {
  rlimit before, none;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  none = before;
  none.rlim_cur = 4;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &none);
  const std::string full = WhyNot(1);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(full, HasSubstr("tokenizer.json: File too large; make room there"));
  EXPECT_EQ(Count(), 0);
  ASSERT_EQ(chmod(cache_.c_str(), 0777), 0);
  EXPECT_THAT(std::string(TokenizerCacheDirectory().status().message()), HasSubstr("chmod go-w"));
  setenv("XDG_CACHE_HOME", "/dev/null", 1);
  EXPECT_THAT(std::string(TokenizerCacheDirectory().status().message()), HasSubstr("cannot write"));
  setenv("XDG_CACHE_HOME", "relative", 1);
  setenv("HOME", "", 1);
  EXPECT_THAT(std::string(TokenizerCacheDirectory().status().message()), HasSubstr("set HOME or"));
}

// More models than are kept, by servers that begin and end at any time.
TEST_F(TokenizerCacheTest, HeldTokenizersAreWholeWhateverOthersDo) {
  const uint64_t seed = harness::Seed();
  std::vector<std::thread> servers;
  for (uint64_t server = 0; server < 4; ++server) {
    servers.emplace_back([this, seed, server] {
      std::mt19937_64 random(seed + server);
      for (int round = 0; round < 150; ++round) {
        const uint64_t number = random() % (3 * kTokenizersMax);
        const absl::StatusOr<KeptTokenizer> kept = KeepTokenizer(cache_, Files(number));
        ASSERT_TRUE(kept.ok()) << kept.status();
        ASSERT_TRUE(IsWhole(kept->directory(), Files(number))) << number;
      }
    });
  }
  for (std::thread& server : servers) server.join();
}

}  // namespace
}  // namespace serve::front
