// malloc and free of kernels, and memcpy and memset where a compiler calls them.
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "softgpu/exec/device_heap.h"
#include "tests/harness/seed.h"
#include "tests/softgpu/exec/nvcc_kernels.h"

namespace softgpu::testing {
namespace {

constexpr uint64_t kBase = 0x3000'0000'0000;

uint64_t RoundUp(uint64_t bytes) { return std::max<uint64_t>((bytes + 15) / 16 * 16, 16); }

// What a heap must be: blocks that share no byte, and memory wherever enough of it is free.
class HeapModel {
 public:
  explicit HeapModel(uint64_t bytes) : end_(kBase + bytes) {}
  bool Fits(uint64_t bytes) const {
    uint64_t at = kBase;
    for (const auto& [begin, length] : blocks_) {
      if (begin - at >= RoundUp(bytes)) return true;
      at = begin + RoundUp(length);
    }
    return end_ - at >= RoundUp(bytes);
  }
  void Add(uint64_t address, uint64_t bytes) {
    EXPECT_EQ(address % 16, 0u);
    EXPECT_GE(address, kBase);
    EXPECT_LE(address + RoundUp(bytes), end_);
    const auto next = blocks_.lower_bound(address);
    if (next != blocks_.end()) EXPECT_LE(address + RoundUp(bytes), next->first);
    if (next != blocks_.begin()) {
      EXPECT_LE(std::prev(next)->first + RoundUp(std::prev(next)->second), address);
    }
    blocks_.emplace(address, bytes);
  }
  std::map<uint64_t, uint64_t>& blocks() { return blocks_; }

 private:
  const uint64_t end_;
  std::map<uint64_t, uint64_t> blocks_;
};

TEST(DeviceHeap, AsTheModelInAnyOrder) {
  std::mt19937_64 random(harness::Seed());
  constexpr uint64_t kBytes = 16 << 10;
  DeviceHeap heap(kBase, kBytes);
  HeapModel model(kBytes);
  for (int step = 0; step < 20000; ++step) {
    if (random() % 2 == 0) {
      const uint64_t bytes = random() % (uint64_t{1} << (random() % 12));
      const uint64_t address = heap.Allocate(bytes);
      ASSERT_EQ(address != 0, model.Fits(bytes)) << "step " << step << ", " << bytes << " bytes";
      if (address != 0) model.Add(address, bytes);
    } else {
      const uint64_t address = kBase + random() % kBytes;
      auto block = model.blocks().upper_bound(address);
      const bool before = block == model.blocks().begin();
      const Memory::Range range = heap.BlockAt(address);
      if (!before) --block;
      const bool inside = !before && address < block->first + block->second;
      ASSERT_EQ(range.end != 0, inside) << "step " << step;
      if (before) continue;
      ASSERT_EQ(heap.Free(address), address == block->first) << "step " << step;
      if (address != block->first) ASSERT_TRUE(heap.Free(block->first));
      ASSERT_FALSE(heap.Free(block->first));
      model.blocks().erase(block);
    }
    if (::testing::Test::HasFailure()) return;
  }
  for (const auto& [address, bytes] : model.blocks()) ASSERT_TRUE(heap.Free(address));
  EXPECT_EQ(heap.Allocate(kBytes), kBase) << "in one piece again";
  EXPECT_EQ(heap.Allocate(1), 0u);
}

TEST(DeviceHeap, GivesNothingThatIsNotThere) {
  DeviceHeap none(0, 0);
  EXPECT_EQ(none.Allocate(0), 0u);
  EXPECT_FALSE(none.Free(0));
  DeviceHeap heap(kBase, 64);
  EXPECT_EQ(heap.Allocate(65), 0u);
  EXPECT_EQ(heap.Allocate(~uint64_t{0}), 0u);
  EXPECT_EQ(heap.Allocate(49), kBase);
}

class HeapKernels : public NvccKernels {
 protected:
  static constexpr uint64_t kHeapBytes = 1 << 20;
  HeapKernels() { machine.heap = &heap_; }
  bool HeapIsEmpty() { return heap_.Allocate(kHeapBytes) != 0; }
  DeviceHeap heap_{machine.Allocate(kHeapBytes), kHeapBytes};
};

TEST_P(HeapKernels, BlocksLiveUntilAnotherKernelFreesThem) {
  constexpr uint32_t kLists = 40, kBlocks = 6, kThreads = 64, kNodes = 5;
  const uint64_t lists = machine.Allocate(kLists * 8), sums = machine.Allocate(kLists * 4);
  for (int round = 0; round < 2; ++round) {
    std::memset(reinterpret_cast<void*>(lists), 0, kLists * 8);
    MustRun("k_push", {kBlocks}, {kThreads}, lists, kLists, kNodes);
    EXPECT_NE(machine.Download<uint64_t>(lists, 1)[0], 0u);
    MustRun("k_pop", {1}, {kLists}, lists, sums);
    const std::vector<int> got = machine.Download<int>(sums, kLists);
    EXPECT_EQ(std::accumulate(got.begin(), got.end(), 0), int(kBlocks * kThreads * kNodes));
  }
  EXPECT_TRUE(HeapIsEmpty());
}

TEST_P(HeapKernels, MallocGivesNullWhenTheHeapIsFull) {
  const uint64_t got = machine.Allocate(4), bytes = kHeapBytes / 150 / 16 * 16;
  MustRun("k_fill_heap", {1}, {2}, got, bytes);
  EXPECT_EQ(machine.Download<uint32_t>(got, 1)[0], kHeapBytes / bytes);
}

INSTANTIATE_TEST_SUITE_P(Variants, HeapKernels, ::testing::Values("80", "90", "80_debug"));

// A kernel of `statements`; %l0 is its parameter.
std::string CallingKernel(const std::string& statements) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n"
         ".extern .func (.param .b64 r) malloc(.param .b64 bytes);\n"
         ".extern .func free(.param .b64 block);\n"
         ".extern .func (.param .b64 r) memcpy(.param .b64 a, .param .b64 b, .param .b64 c);\n"
         ".extern .func (.param .b64 r) memset(.param .b64 a, .param .b32 b, .param .b64 c);\n"
         ".visible .entry calls(.param .u64 at)\n"
         "{ .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %l<8>; .param .b64 a; .param .b64 b;\n"
         ".param .b64 c; .param .b64 d; .param .b32 w; ld.param.u64 %l0, [at];\n" +
         statements + "\nret; }\n";
}

constexpr char kMalloc[] = "st.param.b64 [a], 40; call (d), malloc, (a); ld.param.b64 %l1, [d];\n";
constexpr char kFree[] = "st.param.b64 [a], %l1; call free, (a);\n";

class HeapFaults : public ::testing::Test {
 protected:
  std::optional<Fault> Run(const std::string& statements) {
    machine_.heap = &heap_;
    machine_.Load(CallingKernel(statements));
    at_ = machine_.Allocate(256);
    return machine_.Run("calls", {1}, {1}, at_);
  }
  Machine machine_{4 << 20};
  DeviceHeap heap_{machine_.Allocate(1024), 1024};
  uint64_t at_ = 0;
};

TEST_F(HeapFaults, FreeingTwiceIsOne) {
  const std::string twice = std::string(kMalloc) + kFree + kFree;
  const std::optional<Fault> fault = Run(twice);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_NE(fault->what.find("free of 0x"), std::string::npos) << fault->what;
  EXPECT_NE(fault->address, 0u);
}

TEST_F(HeapFaults, FreeingWhatMallocDidNotGiveIsOne) {
  EXPECT_TRUE(Run("mov.b64 %l1, %l0;\n" + std::string(kFree)).has_value());
  EXPECT_TRUE(Run(kMalloc + std::string("add.u64 %l1, %l1, 16;\n") + kFree).has_value());
}

TEST_F(HeapFaults, FreeingNullIsNone) {
  EXPECT_FALSE(Run("mov.b64 %l1, 0;\n" + std::string(kFree)).has_value());
}

TEST_F(HeapFaults, CheckedLaunchesKnowTheBlocks) {
  machine_.checked = true;
  EXPECT_FALSE(Run(kMalloc +
                   std::string("ld.u32 %r1, [%l1+8]; st.u32 [%l1+36], %r1;\n"
                               "st.u32 [%l1+40], %r1;\n") +
                   kFree + "st.u32 [%l1], %r1;\n")
                   .has_value());
  ASSERT_EQ(machine_.findings.size(), 3u);
  EXPECT_EQ(machine_.findings[0].kind, Finding::Kind::kUninitialised);
  EXPECT_EQ(machine_.findings[1].kind, Finding::Kind::kBounds) << "behind the block";
  EXPECT_NE(machine_.findings[1].text.find("in no block of malloc"), std::string::npos);
  EXPECT_EQ(machine_.findings[2].kind, Finding::Kind::kBounds) << "after free";
}

TEST_F(HeapFaults, MemcpyAndMemset) {
  ASSERT_FALSE(Run("add.u64 %l2, %l0, 1; st.param.b64 [a], %l2; st.param.b32 [w], 0x1c7;\n"
                   "st.param.b64 [c], 30; call (d), memset, (a, w, c); ld.param.b64 %l3, [d];\n"
                   "st.u64 [%l0+128], %l3; add.u64 %l4, %l0, 64; st.param.b64 [a], %l4;\n"
                   "st.param.b64 [b], %l0; st.param.b64 [c], 33; call (d), memcpy, (a, b, c);\n")
                   .has_value());
  std::vector<uint8_t> want(128);
  std::fill(want.begin() + 1, want.begin() + 31, 0xc7);
  std::copy(want.begin(), want.begin() + 33, want.begin() + 64);
  EXPECT_EQ(machine_.Download<uint8_t>(at_, 128), want);
  EXPECT_EQ(machine_.Download<uint64_t>(at_ + 128, 1)[0], at_ + 1);
}

TEST_F(HeapFaults, MemsetStaysInMemory) {
  const std::optional<Fault> fault =
      Run("st.param.b64 [a], 64; st.param.b32 [w], 1; st.param.b64 [c], 8;\n"
          "call (d), memset, (a, w, c);\n");
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(fault->address, 64u);
}

}  // namespace
}  // namespace softgpu::testing
