// What a client's modules and memory say of its launches.
#include "replay/run_prover.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "replay/kernel_image.h"
#include "softgpu/driver/fatbin.h"

namespace replay {
namespace {

constexpr char kModule[] = R"(.version 8.3
.target sm_80
.address_size 64
.visible .global .u32 total;
.visible .entry put(.param .u64 a) {
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [a]; st.global.u32 [%rd1], 1; ret;
}
.visible .entry add() {
  .reg .b64 %rd<4>; .reg .b32 %r<4>;
  mov.u64 %rd1, total; atom.global.add.u32 %r1, [%rd1], 1; ret;
}
.visible .entry fill(.param .u64 a, .param .u32 n) {
  .reg .b64 %rd<4>; .reg .b32 %r<4>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [a]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x;
  setp.ge.u32 %p1, %r2, %r1; @%p1 bra done;
  mul.wide.u32 %rd2, %r2, 4; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r2;
done:
  ret;
}
)";

// A container with one more entry, of machine code.
std::string WithMachineCode(std::string container, uint32_t architecture) {
  std::string entry(72, '\0');
  const auto put = [&entry](size_t at, auto value) {
    std::memcpy(&entry[at], &value, sizeof value);
  };
  put(0, uint16_t{2});
  put(2, uint16_t{0x101});
  put(4, uint32_t{64});
  put(8, uint64_t{8});
  put(28, architecture);
  container += entry;
  const uint64_t bytes = container.size() - softgpu::kFatbinHeaderBytes;
  std::memcpy(&container[8], &bytes, sizeof bytes);
  return container;
}

class RunProverTest : public ::testing::Test {
 protected:
  void Launch(const std::string& kernel, uint64_t address, uint64_t module = 1) {
    launches_.push_back({.module = module,
                         .content = {content_},
                         .image = Image(),
                         .kernel = kernel,
                         .grid = {},
                         .parameters = {}});
    parameters_.emplace_back(8);
    std::memcpy(parameters_.back().data(), &address, 8);
  }
  std::span<const std::byte> Image() const { return std::as_bytes(std::span(image_)); }
  RunProof Prove() {
    for (size_t i = 0; i < launches_.size(); ++i) {
      if (launches_[i].kernel != "add") launches_[i].parameters = parameters_[i];
    }
    ClientMemory memory;
    memory.allocation = [](uint64_t address) -> std::optional<Range> {
      return address < 0x1000 ? std::nullopt : std::optional(Range{address / 64 * 64, 64});
    };
    memory.variable = [this](uint64_t, const std::string& name) {
      EXPECT_EQ(name, "total");
      return variable_;
    };
    memory.movable = [this](uint64_t address) { return address != fixed_; };
    return prover_->Prove(launches_, memory, rename_bytes_max_);
  }
  std::vector<std::pair<int, int>> Edges() {
    std::vector<std::pair<int, int>> edges;
    for (const scheduler::streams::Edge& edge : Prove().order.edges)
      edges.emplace_back(edge.from, edge.to);
    return edges;
  }
  using Pairs = std::vector<std::pair<int, int>>;

  const std::unique_ptr<RunProver> prover_ = MakeRunProver();
  std::string image_ = kModule;
  uint64_t content_ = 1;
  std::optional<Range> variable_;
  uint64_t rename_bytes_max_ = 0, fixed_ = 0;
  std::vector<LaunchToProve> launches_;
  std::vector<std::vector<std::byte>> parameters_;
};

TEST_F(RunProverTest, AddressesTellLaunchesApart) {
  for (const uint64_t address : {0x1000, 0x2000, 0x1000}) Launch("put", address);
  const RunProof proof = Prove();
  EXPECT_EQ(Edges(), (Pairs{{0, 2}}));
  EXPECT_EQ(proof.order.attributed, 3);
  EXPECT_EQ(proof.read, std::vector(3, std::vector<bool>{true, true}));
}

TEST_F(RunProverTest, AVariableIsOfItsModule) {
  Launch("add", 0);
  Launch("add", 0);
  Launch("add", 0, 2);
  EXPECT_EQ(Edges(), (Pairs{{0, 1}}));
}

TEST_F(RunProverTest, AVariableIsWhereTheProgramWasToldItIs) {
  Launch("add", 0);
  Launch("put", 0x1000);
  EXPECT_EQ(Edges(), Pairs{});
  variable_ = Range{0x1000, 4};
  EXPECT_EQ(Edges(), (Pairs{{0, 1}}));
}

TEST_F(RunProverTest, UnknownKernelsKeepTheirPlace) {
  Launch("put", 0x1000);
  Launch("nothing", 0);
  Launch("put", 0x2000);
  EXPECT_EQ(Edges(), (Pairs{{0, 1}, {1, 2}}));
}

class RenamingProverTest : public RunProverTest {
 protected:
  // The launch overwrites the allocation of 64 bytes at the address whole.
  void Fill(uint64_t address) {
    Launch("fill", address);
    parameters_.back().resize(16);
    parameters_.back()[8] = std::byte{16};
    launches_.back().grid.threads[0] = 16;
  }
};

TEST_F(RenamingProverTest, VersionsAreRenamedWhereThereIsRoom) {
  for (int i = 0; i < 3; ++i) Fill(0x1000);
  RunProof proof = Prove();
  EXPECT_TRUE(proof.order.renaming.renames.empty());
  EXPECT_EQ(Edges(), (Pairs{{0, 1}, {1, 2}}));
  EXPECT_EQ(proof.read[0], (std::vector<bool>{true, true, false, false}));
  rename_bytes_max_ = 4096;
  proof = Prove();
  ASSERT_EQ(proof.order.renaming.renames.size(), 2u) << "the last version stays";
  EXPECT_EQ(proof.order.renaming.renames[1].launch, 1u);
  EXPECT_EQ(Edges(), Pairs{});
  EXPECT_EQ(proof.read[2], (std::vector<bool>{true, true, true, false}))
      << "what is overwritten rests on the bound";
}

TEST_F(RenamingProverTest, OnlyMemoryThatMayMoveIsRenamed) {
  rename_bytes_max_ = 4096;
  fixed_ = 0x1000;
  for (int i = 0; i < 3; ++i) Fill(0x1000);
  for (int i = 0; i < 2; ++i) Fill(0x2000);
  const RunProof proof = Prove();
  ASSERT_EQ(proof.order.renaming.renames.size(), 1u);
  EXPECT_EQ(proof.order.renaming.renames[0].launch, 3u);
}

TEST_F(RunProverTest, AnImageWithoutTextTellsNothing) {
  image_ =
      "\x7f"
      "ELF and more";
  Launch("put", 0x1000);
  Launch("put", 0x2000);
  EXPECT_EQ(Edges(), (Pairs{{0, 1}}));
}

TEST(KernelImageTest, ContainersAreOpened) {
  const std::string container = softgpu::MakeFatbin(kModule, 80);
  const auto read = [](const std::string& image) {
    return ReadKernelImageUntrusted(std::as_bytes(std::span(image)));
  };
  ASSERT_NE(read(container), nullptr);
  EXPECT_EQ(read(container)->kernels().size(), 3u);
  EXPECT_NE(read(WithMachineCode(container, 80)), nullptr);
  EXPECT_EQ(read(WithMachineCode(container, 90)), nullptr) << "it may be other code";
  EXPECT_EQ(read(""), nullptr);
  EXPECT_EQ(read(std::string(3, '\0')), nullptr);
}

}  // namespace
}  // namespace replay
