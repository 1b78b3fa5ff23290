#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "ipc/history.h"
#include "ipc/state_dir.h"
#include "tests/ipc/testing.h"

namespace ipc {
namespace {

TEST(HistoryLineTest, ComesBack) {
  HistoryRecord record;
  record.job = 7;
  record.command = "python3 \"train\".py\n\xff";
  record.begin_s = 100;
  record.end_s = 200;
  record.iterations = ~uint64_t{0};
  record.exit = 137;
  record.note = "error 700";
  const HistoryRead read = ReadHistoryUntrusted(HistoryLine(record));
  ASSERT_EQ(read.records.size(), 1u);
  EXPECT_EQ(HistoryLine(read.records[0]), HistoryLine(record));
  EXPECT_EQ(read.records[0].exit, 137);
}

TEST(HistoryLineTest, LongTextsAreCut) {
  HistoryRecord record;
  for (const char* const letter : {"x", "\x01", "\xff", "\xc3\xbc"}) {
    record.command.clear();
    for (int i = 0; i < 10'000; ++i) record.command += letter;
    record.note = record.command;
    const std::string line = HistoryLine(record);
    EXPECT_LE(line.size(), kHistoryLineMax);
    EXPECT_EQ(ReadHistoryUntrusted(line).records.size(), 1u);
  }
}

TEST(HistoryLineTest, WhatIsNoRecordIsSkipped) {
  const std::string good = HistoryLine({});
  const HistoryRead read = ReadHistoryUntrusted(good + "nonsense\n\n{}\n{\"job\":-1}\n" + good +
                                                good.substr(0, good.size() / 2));
  EXPECT_EQ(read.records.size(), 2u);
  EXPECT_EQ(read.skipped, 5u);
}

TEST(StateFilesTest, AreReplacedAsAWholeAndMakeTheirDirectory) {
  const TemporaryDir dir;
  const std::string path = dir.path() + "/a/b/file";
  EXPECT_TRUE(absl::IsNotFound(ReadBounded(path, 10).status()));
  ASSERT_TRUE(WriteWhole(path, "first").ok());
  ASSERT_TRUE(WriteWhole(path, "second").ok());
  EXPECT_EQ(*ReadBounded(path, 10), "second");
  EXPECT_TRUE(absl::IsResourceExhausted(ReadBounded(path, 5).status()));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path() + "/a/b"), {}), 1);
  struct stat info;
  ASSERT_EQ(stat((dir.path() + "/a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST(StateFilesTest, AFileThatIsFullBecomesTheOlderOne) {
  const TemporaryDir dir;
  const std::string path = dir.path() + "/log";
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(AppendLine(path, "12345678\n", 20).ok());
  EXPECT_EQ(*ReadBounded(path, 100), "12345678\n");
  EXPECT_EQ(*ReadBounded(path + ".1", 100), "12345678\n12345678\n");
}

TEST(StateFilesTest, WhatCanNotBeWrittenIsSaid) {
  const TemporaryDir dir;
  std::ofstream(dir.path() + "/file") << "x";
  const absl::Status failed = AppendLine(dir.path() + "/file/below", "x\n", 100);
  EXPECT_FALSE(failed.ok());
  EXPECT_NE(std::string(failed.message()).find(dir.path()), std::string::npos);
  std::filesystem::create_directory(dir.path() + "/dir");
  EXPECT_FALSE(WriteWhole(dir.path() + "/dir", "x").ok());
  EXPECT_FALSE(ReadBounded(dir.path() + "/dir", 10).ok());
}

TEST(StateFilesTest, NobodyElseReadsThemAndAFailureLeavesNothing) {
  const TemporaryDir dir;
  const std::string file = dir.path() + "/file", taken = dir.path() + "/taken";
  ASSERT_TRUE(WriteWhole(file, "text").ok());
  struct stat info;
  ASSERT_EQ(stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0077, 0u);
  std::filesystem::create_directories(taken + "/inside");  // nothing replaces that
  EXPECT_FALSE(WriteWhole(taken, "text").ok());
  size_t files = 0;
  for (const std::filesystem::directory_entry& entry :
       std::filesystem::directory_iterator(dir.path())) {
    files += entry.is_regular_file();
  }
  EXPECT_EQ(files, 1u);
}

TEST(StateFilesTest, WhatIsNotTheUsersOwnIsNotRead) {
  const TemporaryDir dir;
  const std::string path = dir.path() + "/file", link = dir.path() + "/link";
  EXPECT_TRUE(absl::IsNotFound(ReadOwn(path, 10).status()));
  ASSERT_TRUE(WriteWhole(path, "text").ok());
  EXPECT_EQ(*ReadOwn(path, 4), "text");
  EXPECT_TRUE(absl::IsResourceExhausted(ReadOwn(path, 3).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(ReadOwn(dir.path(), 10).status()));
  std::filesystem::create_symlink(path, link);
  EXPECT_TRUE(absl::IsFailedPrecondition(ReadOwn(link, 10).status()));
  ASSERT_EQ(mkfifo((dir.path() + "/fifo").c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(ReadOwn(dir.path() + "/fifo", 10).status()));
  ASSERT_EQ(chmod(path.c_str(), 0620), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(ReadOwn(path, 10).status()));
}

TEST(StateFilesTest, AnotherUsersFileIsNotRead) {
  const TemporaryDir dir;
  const std::string path = dir.path() + "/file";
  ASSERT_TRUE(WriteWhole(path, "text").ok());
  if (chown(path.c_str(), 12345, 12345) != 0) return;  // only root can give away
  const absl::Status status = ReadOwn(path, 10).status();
  EXPECT_TRUE(absl::IsPermissionDenied(status));
  EXPECT_EQ(std::string(status.message()), path + " belongs to another user");
}

}  // namespace
}  // namespace ipc
