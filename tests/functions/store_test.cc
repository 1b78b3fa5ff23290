#include "functions/store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "functions/function_file.h"
#include "ipc/state_dir.h"

namespace functions {
namespace {

class StoreTest : public ::testing::Test {
 protected:
  StoreTest() {
    char dir[] = "/tmp/laneway-store-XXXXXX";
    root_ = mkdtemp(dir);
    setenv("XDG_STATE_HOME", root_.c_str(), 1);
  }
  ~StoreTest() override { std::filesystem::remove_all(root_); }

  std::string PathOf(const std::string& file) const { return root_ + "/laneway/functions/" + file; }
  void Write(const std::string& path, const Function& function) {
    const Bytes file = EncodeFunction(function);
    ASSERT_TRUE(
        ipc::WriteWhole(path, {reinterpret_cast<const char*>(file.data()), file.size()}).ok());
  }
  void KeepExample(const std::string& name) {
    Function function;
    function.inputs.push_back({0, 8});
    Write(*NewRecordingPath(), function);
    ASSERT_TRUE(Keep(*NewRecordingPath(), name).ok());
  }

  std::string root_;
};

TEST_F(StoreTest, WhatIsKeptIsLoaded) {
  KeepExample("one");
  const absl::StatusOr<Stored> stored = Load("one");
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(stored->function.inputs[0].bytes, 8u);
  EXPECT_EQ(stored->manifest.inputs[0].name, "input0");
  EXPECT_FALSE(std::filesystem::exists(*NewRecordingPath()));
  struct stat info;
  ASSERT_EQ(stat(PathOf("").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST_F(StoreTest, NamesThatAreNoNamesAreRefused) {
  for (const char* const name : {"", ".", "../x", "a/b", "-x", "a b"})
    EXPECT_FALSE(CheckName(name).ok()) << name;
  EXPECT_FALSE(CheckName(std::string(49, 'a')).ok());
  EXPECT_TRUE(CheckName("bert-base_2.1").ok());
}

TEST_F(StoreTest, AFunctionThatIsNotThereIsNamed) {
  EXPECT_TRUE(absl::IsNotFound(Load("none").status()));
}

TEST_F(StoreTest, LinksAndFilesThatOthersMayWriteAreNotRead) {
  KeepExample("one");
  std::filesystem::rename(PathOf("one.function"), PathOf("elsewhere"));
  std::filesystem::create_symlink(PathOf("elsewhere"), PathOf("one.function"));
  EXPECT_FALSE(Load("one").ok());
  std::filesystem::remove(PathOf("one.function"));
  std::filesystem::rename(PathOf("elsewhere"), PathOf("one.function"));
  EXPECT_TRUE(Load("one").ok());
  chmod(PathOf("one.function").c_str(), 0666);
  EXPECT_TRUE(absl::IsPermissionDenied(Load("one").status()));
}

TEST_F(StoreTest, AnotherUsersFileIsNotRead) {
  KeepExample("one");
  if (chown(PathOf("one.function").c_str(), 12345, 12345) != 0) return;  // only root can give away
  EXPECT_TRUE(absl::IsPermissionDenied(Load("one").status()));
}

TEST_F(StoreTest, AManifestThatDoesNotFitIsRefused) {
  KeepExample("one");
  std::ofstream(PathOf("one.json")) << R"({"inputs": [], "outputs": []})";
  EXPECT_NE(Load("one").status().message().find("0 inputs"), std::string::npos);
}

}  // namespace
}  // namespace functions
