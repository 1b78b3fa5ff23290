#include "serve/llm/format/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <utility>

namespace serve::llm {
namespace {

class MappedFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char dir[] = "/tmp/mapped_file_XXXXXX";
    ASSERT_NE(mkdtemp(dir), nullptr);
    dir_ = dir;
    path_ = dir_ + "/file";
  }
  void TearDown() override {
    unlink(path_.c_str());
    rmdir(dir_.c_str());
  }
  void Write(const std::string& text) { std::ofstream(path_) << text; }
  std::string WhyNot(const std::string& path) {
    return std::string(MappedFile::Open(path).status().message());
  }

  std::string dir_;
  std::string path_;
};

TEST_F(MappedFileTest, BytesAreTheFiles) {
  Write("weights");
  absl::StatusOr<MappedFile> file = MappedFile::Open(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  const MappedFile moved = std::move(*file);
  ASSERT_EQ(moved.bytes().size(), 7u);
  EXPECT_EQ(moved.bytes()[6], std::byte{'s'});
  EXPECT_TRUE(file->bytes().empty());
}

TEST_F(MappedFileTest, OtherThanRegularFilesAreRefused) {
  EXPECT_NE(WhyNot(path_).find("cannot open"), std::string::npos);
  EXPECT_NE(WhyNot(dir_).find("is a directory"), std::string::npos);
  Write("");
  EXPECT_NE(WhyNot(path_).find("is empty"), std::string::npos);
  unlink(path_.c_str());
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_NE(WhyNot(path_).find("no regular file"), std::string::npos);
}

TEST(WhyNotMappedTest, FilesOfTheUserAndOfRootAreRead) {
  struct stat file {};
  file.st_mode = S_IFREG | 0644;
  file.st_size = 1;
  const std::pair<uid_t, bool> cases[] = {{1000, true}, {0, true}, {1001, false}};
  for (const auto& [owner, read] : cases) {
    file.st_uid = owner;
    EXPECT_EQ(WhyNotMapped(file, 1000).empty(), read) << owner;
  }
  file.st_uid = 1000;
  EXPECT_NE(WhyNotMapped(file, 0), "");  // root does not read files of others either
}

}  // namespace
}  // namespace serve::llm
