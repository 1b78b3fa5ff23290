#include "daemon/worker/kernel_names.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>

#include "ipc/work_records.h"
#include "tests/daemon/worker/image_track.h"

namespace worker {
namespace {

std::map<CUfunction, std::string> names;

CUresult CUDAAPI NameOfFunction(const char** name, CUfunction function) {
  const auto found = names.find(function);
  if (found == names.end()) return CUDA_ERROR_INVALID_HANDLE;
  *name = found->second.c_str();
  return CUDA_SUCCESS;
}

CUfunction Function(uintptr_t handle) { return reinterpret_cast<CUfunction>(handle); }

class KernelNamesTest : public ::testing::Test {
 protected:
  KernelNamesTest() {
    names = {{Function(1), "a"}, {Function(2), "b"}};
    driver_.cuFuncGetName = &NameOfFunction;
    kernels_.Begin(track_.Writer());
  }
  // Those that were told since the last call, by number.
  std::map<uint32_t, std::string> Told() {
    std::map<uint32_t, std::string> told;
    track_.TakeAll(ipc::TraceKind::kKernel, [&told](std::span<const std::byte> bytes) {
      ipc::KernelHead head;
      std::memcpy(&head, bytes.data(), sizeof head);
      told[head.number] = std::string(reinterpret_cast<const char*>(bytes.data()) + sizeof head,
                                      bytes.size() - sizeof head);
    });
    return told;
  }

  ImageTrack track_;
  ipc::DriverTable driver_{};
  LoadedImages images_;
  KernelNames kernels_{driver_, &images_};
};

TEST_F(KernelNamesTest, EachNameIsToldOnceInATrace) {
  for (int launch = 0; launch < 3; ++launch) {
    EXPECT_EQ(kernels_.NumberOf(Function(2)), 1u);
    EXPECT_EQ(kernels_.NumberOf(Function(1)), 2u);
  }
  EXPECT_EQ(Told(), (std::map<uint32_t, std::string>{{1, "b"}, {2, "a"}}));
  kernels_.Begin(track_.Writer());
  EXPECT_EQ(kernels_.NumberOf(Function(1)), 1u);
  EXPECT_EQ(Told(), (std::map<uint32_t, std::string>{{1, "a"}}));
}

TEST_F(KernelNamesTest, AFunctionWithoutNameHasNoNumber) {
  EXPECT_EQ(kernels_.NumberOf(nullptr), 0u);
  EXPECT_EQ(kernels_.NumberOf(Function(3)), 0u);
  EXPECT_TRUE(Told().empty());
}

TEST_F(KernelNamesTest, AHandleThatComesAgainAfterAnUnloadIsAnotherKernel) {
  EXPECT_EQ(kernels_.NumberOf(Function(1)), 1u);
  images_.Remove(nullptr);
  names[Function(1)] = "later";
  EXPECT_EQ(kernels_.NumberOf(Function(1)), 2u);
  EXPECT_EQ(Told(), (std::map<uint32_t, std::string>{{1, "a"}, {2, "later"}}));
}

TEST_F(KernelNamesTest, ANameWithoutRoomIsToldLater) {
  names.clear();
  constexpr uintptr_t kMany = 1000;
  for (uintptr_t i = 1; i <= kMany; ++i) names[Function(i)] = std::string(4000, 'k');
  uintptr_t full = 1;
  while (full <= kMany && kernels_.NumberOf(Function(full)) != 0) ++full;
  ASSERT_LT(full, kMany) << "a track holds less than all of them";
  EXPECT_EQ(kernels_.NumberOf(Function(full)), 0u);
  EXPECT_EQ(kernels_.NumberOf(Function(full - 1)), full - 1) << "it is told already";
  EXPECT_EQ(Told().size(), full - 1);
  EXPECT_EQ(kernels_.NumberOf(Function(full)), full);
  EXPECT_EQ(Told().count(static_cast<uint32_t>(full)), 1u);
}

}  // namespace
}  // namespace worker
