// Images come in pieces from an untrusted client: only whole ones with the announced hash are kept.
#include "daemon/worker/modules.h"

#include <gtest/gtest.h>
#include <sodium.h>

#include <cstring>
#include <string>
#include <vector>

#include "ipc/calls/limits.h"

namespace worker {
namespace {

ModuleHash HashOf(const std::string& text) {
  ModuleHash result;
  crypto_generichash(reinterpret_cast<unsigned char*>(result.word), sizeof result.word,
                     reinterpret_cast<const unsigned char*>(text.data()), text.size(), nullptr, 0);
  return result;
}

bool Append(ModuleAssembly* assembly, const ModuleHash& hash, const std::string& whole,
            size_t offset, size_t n) {
  return assembly->AppendUntrusted(hash, whole.size(), offset,
                                   std::as_bytes(std::span(whole)).subspan(offset, n)) ==
         CUDA_SUCCESS;
}

TEST(ModuleAssembly, TakesPiecesInOrder) {
  const std::string text = ".version 8.0\n.target sm_80\n";
  ModuleAssembly assembly;
  EXPECT_TRUE(Append(&assembly, HashOf(text), text, 0, 5));
  EXPECT_FALSE(assembly.complete());
  EXPECT_FALSE(Append(&assembly, HashOf(text), text, 6, 5)) << "a gap";
  EXPECT_TRUE(Append(&assembly, HashOf(text), text, 5, text.size() - 5));
  ASSERT_TRUE(assembly.complete());
  const std::vector<std::byte> bytes = assembly.Release();
  ASSERT_EQ(bytes.size(), text.size() + 1);
  EXPECT_EQ(std::memcmp(bytes.data(), text.c_str(), bytes.size()), 0);
}

TEST(ModuleAssembly, RefusesMoreThanAnnounced) {
  const std::string text = "0123456789";
  ModuleAssembly assembly;
  const std::span<const std::byte> all = std::as_bytes(std::span(text));
  EXPECT_EQ(assembly.AppendUntrusted(HashOf(text), 4, 0, all.first(3)), CUDA_SUCCESS);
  EXPECT_EQ(assembly.AppendUntrusted(HashOf(text), 4, 3, all.first(2)), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(assembly.AppendUntrusted(HashOf(text), 0, 0, all.first(0)), CUDA_ERROR_INVALID_IMAGE)
      << "an empty image";
  EXPECT_EQ(assembly.AppendUntrusted(HashOf(text), UINT64_MAX, 0, all), CUDA_ERROR_INVALID_IMAGE)
      << "past the limit";
}

TEST(ModuleAssembly, UnfinishedImagesTakeBoundedMemory) {
  constexpr uint64_t kOwn = ipc::limits::kModuleBytesOwn, kMiB = 1 << 20;
  const std::vector<std::byte> piece(kMiB);
  AssemblyBudget budget(2 * kMiB);
  const auto fill = [&](ModuleAssembly* assembly, uint64_t bytes) {
    CUresult result = CUDA_SUCCESS;
    for (uint64_t at = 0; at < bytes && result == CUDA_SUCCESS; at += kMiB)
      result = assembly->AppendUntrusted(ModuleHash(), ipc::limits::kModuleBytesMax, at, piece);
    return result;
  };
  ModuleAssembly large(&budget), other(&budget);
  EXPECT_EQ(fill(&large, kOwn + 2 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(budget.used(), 2 * kMiB);
  EXPECT_EQ(fill(&other, kOwn), CUDA_SUCCESS) << "a part is everybody's own";
  EXPECT_EQ(fill(&other, kOwn + kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_FALSE(other.begun()) << "what can't be finished is dropped";
  EXPECT_EQ(fill(&large, kMiB), CUDA_SUCCESS) << "another image in its place";
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_EQ(fill(&other, kOwn + 2 * kMiB), CUDA_SUCCESS);
}

TEST(ModuleCache, KeepsOnlyWhatHasTheHash) {
  ModuleCache cache(1 << 20);
  const std::string text = "image";
  std::vector<std::byte> bytes(6);
  std::memcpy(bytes.data(), text.c_str(), 6);
  EXPECT_FALSE(cache.Add(HashOf("other"), bytes));
  EXPECT_EQ(cache.Find(HashOf("other")), nullptr);
  EXPECT_TRUE(cache.Add(HashOf(text), bytes));
  ASSERT_NE(cache.Find(HashOf(text)), nullptr);
}

// XXH3 without a secret is no such hash: from any image others with the same 128 bits can be made.
TEST(ModuleCache, ItsNamesAreACryptographicHash) {
  ModuleCache cache(1 << 20);
  const std::string text = "abc";
  const ModuleHash hash = cache.AddMade(std::as_bytes(std::span(text)));
  const unsigned char expected[32] = {0xbd, 0xdd, 0x81, 0x3c, 0x63, 0x42, 0x39, 0x72,
                                      0x31, 0x71, 0xef, 0x3f, 0xee, 0x98, 0x57, 0x9b,
                                      0x94, 0x96, 0x4e, 0x3b, 0xb1, 0xcb, 0x3e, 0x42,
                                      0x72, 0x62, 0xc8, 0xc0, 0x68, 0xd5, 0x23, 0x19};
  static_assert(sizeof hash.word == sizeof expected);
  EXPECT_EQ(std::memcmp(hash.word, expected, sizeof expected), 0) << "BLAKE2b-256 of abc";
}

TEST(ModuleCache, ForgetsTheLeastRecentlyUsed) {
  ModuleCache cache(250);
  const auto add = [&cache](char letter) {
    const std::string text(100, letter);
    std::vector<std::byte> bytes(101);
    std::memcpy(bytes.data(), text.c_str(), 101);
    EXPECT_TRUE(cache.Add(HashOf(text), bytes));
    return HashOf(text);
  };
  const ModuleHash a = add('a'), b = add('b');
  EXPECT_NE(cache.Find(a), nullptr);  // now b is the oldest
  add('c');
  EXPECT_NE(cache.Find(a), nullptr);
  EXPECT_EQ(cache.Find(b), nullptr);
}

}  // namespace
}  // namespace worker
