#include "ipc/options.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "ipc/bytes.h"
#include "ipc/job_options.h"
#include "tests/ipc/testing.h"

namespace ipc {
namespace {

class OptionsTest : public ::testing::Test {
 protected:
  OptionsTest() {
    setenv("XDG_CONFIG_HOME", dir_.path().c_str(), 1);
    std::filesystem::create_directories(dir_.path() + "/laneway");
  }
  absl::Status Read(const std::string& text) {
    std::ofstream(ConfigPath()) << text;
    return ReadConfig(&options_);
  }
  void ExpectRefused(const std::string& text, const std::string& word) {
    const absl::Status status = Read(text);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    const std::string sentence(status.message());
    EXPECT_NE(sentence.find("config.toml"), std::string::npos) << sentence;
    EXPECT_NE(sentence.find(word), std::string::npos) << sentence;
    EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
  }

  const TemporaryDir dir_;
  Options options_;
};

TEST_F(OptionsTest, TogglesAreTrueOrFalse) {
  ASSERT_TRUE(Read("no-env = true\n").ok());
  EXPECT_TRUE(options_.no_env);
  EXPECT_FALSE(options_.no_sites);
  EXPECT_TRUE(AsArguments(options_).empty()) << "they are the client's alone";
  ExpectRefused("no-env = \"yes\"\n", "no-env");
}

TEST_F(OptionsTest, TermsOfJobsAreTheProgramsAndQuotasTheDaemons) {
  ASSERT_TRUE(Read("priority = 0\nweight = 300\ndeadline = \"20ms\"\ngang = 2\ngpus = \"1,0\"\n"
                   "label = \"night\"\n")
                  .ok());
  EXPECT_TRUE(AsArguments(options_).empty());
  const SchedulingTerms terms = TermsOf(options_);
  EXPECT_EQ(terms.priority, 0u);
  EXPECT_EQ(terms.weight, 300u);
  EXPECT_EQ(terms.deadline_us, 20'000u);
  EXPECT_EQ(terms.gang, 2u);
  EXPECT_EQ(terms.device_count, 2u);
  EXPECT_EQ(terms.devices[0], 1);
  EXPECT_STREQ(terms.label, "night");
  ASSERT_TRUE(Read("user-memory = \"8GiB\"\nuser-sessions = 3\n").ok());
  EXPECT_EQ(AsArguments(options_),
            (std::vector<std::string>{"--user-memory=8GiB", "--user-sessions=3"}));
  ExpectRefused("weight = 0\n", "1 to 10000");
  ExpectRefused("priority = 100\n", "0 to 99");
  ExpectRefused("deadline = \"20\"\n", "20ms");
  ExpectRefused("deadline = \"-1s\"\n", "20ms");
  ExpectRefused("deadline = \"inf\"\n", "20ms");
  for (const char* const gpus : {"", "a", "0,", "0,0", "8", "any:0", "any:9", "anyone", "any:"})
    ExpectRefused("gpus = \"" + std::string(gpus) + "\"\n", "any:2");
  ExpectRefused("label = \"two\\nlines\"\n", "one line");
}

TEST_F(OptionsTest, NoFileIsFine) { EXPECT_TRUE(ReadConfig(&options_).ok()); }

TEST_F(OptionsTest, KeysAreTheLongFlags) {
  ASSERT_TRUE(Read("device = \"soft\"\nlinger = 5\nlog-level = \"debug\"\n").ok());
  EXPECT_EQ(options_.device, "soft");
  EXPECT_EQ(options_.linger_s, 5);
  EXPECT_EQ(options_.log_level, "debug");
}

TEST_F(OptionsTest, WhatIsWrongIsNamed) {
  ExpectRefused("transport = [unfinished\n", ":1:");
  ExpectRefused("no-such-key = 1\n", "no-such-key");
  ExpectRefused("transport = \"pigeon\"\n", "pigeon");
  ExpectRefused("linger = \"soon\"\n", "soon");
  ExpectRefused("linger = -1\n", "-1");
  ExpectRefused("device = 3\n", "device");
  ExpectRefused("mode = \"private\"\n", "shared");
}

TEST_F(OptionsTest, ADirectoryIsNoConfiguration) {
  std::filesystem::create_directory(ConfigPath());
  EXPECT_TRUE(absl::IsInvalidArgument(ReadConfig(&options_)));
}

TEST_F(OptionsTest, OnlyWhatDiffersIsHandedOn) {
  EXPECT_TRUE(AsArguments(options_).empty());
  options_.device = "soft";
  options_.linger_s = 3;
  EXPECT_EQ(AsArguments(options_), (std::vector<std::string>{"--device=soft", "--linger=3"}));
}

TEST(FlagsTest, EveryFlagHasOneTargetAndHelp) {
  const Options defaults;
  for (const Flag& flag : Flags()) {
    const int targets =
        (flag.text != nullptr) + (flag.number != nullptr) + (flag.toggle != nullptr);
    EXPECT_EQ(targets, 1) << flag.name;
    EXPECT_NE(std::string(flag.help), "") << flag.name;
    if (flag.text == nullptr || flag.choices.empty()) continue;
    Options options;
    EXPECT_TRUE(SetOption(flag, defaults.*flag.text, flag.name, &options).ok()) << flag.name;
  }
}

TEST_F(OptionsTest, AmountsOfMemoryAreReadAsPeopleWriteThem) {
  EXPECT_EQ(ParseBytes("6GiB"), uint64_t{6} << 30);
  EXPECT_EQ(ParseBytes("1.5MiB"), uint64_t{3} << 19);
  EXPECT_EQ(ParseBytes("1000"), 1000u);
  EXPECT_EQ(ParseBytes("0"), 0u);
  for (const char* const bad :
       {"", "GiB", "-1", "1.5", "6GB", "nan", "inf", "1e30", "9999999TiB"}) {
    EXPECT_FALSE(ParseBytes(bad).has_value()) << bad;
  }
  EXPECT_EQ(BytesOption("", -1), -1);
  ExpectRefused("swap = \"much\"\n", "6GiB");
}

TEST_F(OptionsTest, WhatIsTheProgramsIsNotPassedToADaemon) {
  options_.memory = "6GiB";
  options_.swap = "1GiB";
  const std::vector<std::string> arguments = AsArguments(options_);
  EXPECT_EQ(arguments, std::vector<std::string>{"--swap=1GiB"});
}

TEST_F(OptionsTest, NumbersHaveAMost) {
  const Flag* const flag = FindFlag("metrics");
  ASSERT_NE(flag, nullptr);
  EXPECT_TRUE(SetOption(*flag, "65535", "--metrics", &options_).ok());
  EXPECT_FALSE(SetOption(*flag, "65536", "--metrics", &options_).ok());
  EXPECT_FALSE(SetOption(*flag, "-1", "--metrics", &options_).ok());
}

}  // namespace
}  // namespace ipc
