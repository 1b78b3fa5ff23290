#include "replay/run_prover.h"

#include <map>
#include <utility>

#include "replay/kernel_image.h"
#include "softgpu/ptx/ir.h"

namespace replay {
namespace {

constexpr size_t kImagesMax = 512;
// Where variables lie that the program has no address of: outside of all devices' addresses.
constexpr uint64_t kVariablesBase = uint64_t{1} << 62;

struct AnalysedImage {
  std::shared_ptr<const softgpu::PtxModule> module;  // null: not known
  std::map<std::string, KernelAccess> kernels;       // by name
};

class Prover final : public RunProver {
 public:
  RunProof Prove(std::span<const LaunchToProve> launches, const ClientMemory& memory,
                 uint64_t rename_bytes_max) override {
    if (images_.size() >= kImagesMax) images_.clear();
    RunProof proof;
    std::vector<RunLaunch> run;
    for (const LaunchToProve& launch : launches) run.push_back(RunLaunchOf(launch, memory));
    proof.order = OrderOf(run, scheduler::streams::kV100, rename_bytes_max);
    for (const RunLaunch& launch : run)
      proof.read.push_back(WordsRead(launch.access, launch.parameters.size(), proof.order.grounds));
    return proof;
  }

  LaunchTouches Touches(const LaunchToProve& launch, const ClientMemory& memory) override {
    if (images_.size() >= kImagesMax) images_.clear();
    const RunLaunch run = RunLaunchOf(launch, memory);
    if (run.access != nullptr) return TouchesOfLaunch(run);
    const bool has_ptx = ImageOf(launch).module != nullptr;
    return {.touches = {},
            .unknown = has_ptx ? "its module's PTX has no kernel of this name"
                               : "its module has no PTX that can be read"};
  }

 private:
  // `launch` and `memory` outlive the result.
  RunLaunch RunLaunchOf(const LaunchToProve& launch, const ClientMemory& memory) {
    return {
        .access = AccessOf(launch),
        .grid = launch.grid,
        .parameters = launch.parameters,
        .memory = {.allocation = memory.allocation,
                   .variable = [this, &launch, &memory](
                                   uint32_t index) { return VariableOf(launch, memory, index); },
                   .movable = memory.movable}};
  }

  AnalysedImage& ImageOf(const LaunchToProve& launch) {
    const auto [at, is_new] = images_.try_emplace(launch.content);
    if (is_new) at->second.module = ReadKernelImageUntrusted(launch.image);
    return at->second;
  }

  // Null: not known.
  const KernelAccess* AccessOf(const LaunchToProve& launch) {
    AnalysedImage& image = ImageOf(launch);
    if (const auto known = image.kernels.find(launch.kernel); known != image.kernels.end())
      return &known->second;
    if (image.module == nullptr) return nullptr;
    for (const std::unique_ptr<const softgpu::Kernel>& kernel : image.module->kernels()) {
      if (kernel->name() != launch.kernel) continue;
      const KernelAccess access = Analyse(static_cast<const softgpu::ptx::KernelImpl&>(*kernel));
      return &image.kernels.emplace(launch.kernel, access).first->second;
    }
    return nullptr;
  }

  // The kernels of its module alone reach a variable whose address the program has not asked for:
  // any range that no allocation has stands for the variable.
  std::optional<Range> VariableOf(const LaunchToProve& launch, const ClientMemory& memory,
                                  uint32_t index) {
    const softgpu::Variable& variable = ImageOf(launch).module->variables()[index];
    if (const std::optional<Range> asked = memory.variable(launch.module, variable.name);
        asked.has_value())
      return asked;
    const auto [at, is_new] =
        variables_.try_emplace(std::pair(launch.module, index), next_variable_);
    if (is_new) next_variable_ += variable.bytes + 1;
    return Range{at->second, variable.bytes};
  }

  std::map<std::array<uint64_t, 4>, AnalysedImage> images_;
  std::map<std::pair<uint64_t, uint32_t>, uint64_t> variables_;  // by module and index
  uint64_t next_variable_ = kVariablesBase;
};

}  // namespace

std::unique_ptr<RunProver> MakeRunProver() { return std::make_unique<Prover>(); }

}  // namespace replay
