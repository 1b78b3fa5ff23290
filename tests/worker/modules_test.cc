// Images come in pieces from an untrusted client: only whole ones with the announced hash are kept.
#include "daemon/worker/modules.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <cstring>
#include <string>

namespace worker {
namespace {

ModuleHash HashOf(const std::string& text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  ModuleHash result;
  result.word[0] = hash.low64;
  result.word[1] = hash.high64;
  return result;
}

bool Append(ModuleAssembly* assembly, const ModuleHash& hash, const std::string& whole,
            size_t offset, size_t n) {
  return assembly->AppendUntrusted(hash, whole.size(), offset,
                                   std::as_bytes(std::span(whole)).subspan(offset, n));
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
  EXPECT_TRUE(assembly.AppendUntrusted(HashOf(text), 4, 0, all.first(3)));
  EXPECT_FALSE(assembly.AppendUntrusted(HashOf(text), 4, 3, all.first(2)));
  EXPECT_FALSE(assembly.AppendUntrusted(HashOf(text), 0, 0, all.first(0))) << "an empty image";
  EXPECT_FALSE(assembly.AppendUntrusted(HashOf(text), UINT64_MAX, 0, all)) << "past the limit";
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
