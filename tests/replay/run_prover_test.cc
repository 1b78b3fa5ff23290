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
      if (launches_[i].kernel == "put") launches_[i].parameters = parameters_[i];
    }
    ClientMemory memory;
    memory.allocation = [](uint64_t address) -> std::optional<Range> {
      return address < 0x1000 ? std::nullopt : std::optional(Range{address / 64 * 64, 64});
    };
    memory.variable = [this](uint64_t, const std::string& name) {
      EXPECT_EQ(name, "total");
      return variable_;
    };
    return prover_->Prove(launches_, memory);
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
  EXPECT_EQ(read(container)->kernels().size(), 2u);
  EXPECT_NE(read(WithMachineCode(container, 80)), nullptr);
  EXPECT_EQ(read(WithMachineCode(container, 90)), nullptr) << "it may be other code";
  EXPECT_EQ(read(""), nullptr);
  EXPECT_EQ(read(std::string(3, '\0')), nullptr);
}

}  // namespace
}  // namespace replay
