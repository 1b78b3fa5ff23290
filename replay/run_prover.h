// Proves orders of runs of launches (run_order.h) for a client, which knows its modules' images and
// where its memory is.
//
// An image is parsed once, and a kernel analysed once, when a launch needs them. This is what the
// client loads as a library when it replays: a program that does not replay never loads the parser.
// Thread safety: one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "replay/run_order.h"

namespace replay {

struct LaunchToProve {
  uint64_t module = 0;                // one load of the image, which has its own variables
  std::array<uint64_t, 4> content{};  // of the image: equal for equal bytes alone
  std::span<const std::byte> image;
  std::string kernel;
  Grid grid;
  std::span<const std::byte> parameters;
};

// What the client says of its memory.
struct ClientMemory {
  // The allocation that holds this address, or has held it last.
  std::function<std::optional<Range>(uint64_t address)> allocation;
  // Where a module's variable is, if the program has asked.
  std::function<std::optional<Range>(uint64_t module, const std::string& name)> variable;
  // Whether the memory at this address is device memory of one allocation, which nothing but work
  // of the device looks at. None: no memory is renamed.
  std::function<bool(uint64_t address)> movable = nullptr;
};

struct RunProof {
  RunOrder order;
  std::vector<std::vector<bool>> read;  // WordsRead() of each launch
};

class RunProver {
 public:
  virtual ~RunProver() = default;
  // Versions of ranges are renamed into so many bytes (versions.h).
  virtual RunProof Prove(std::span<const LaunchToProve> launches, const ClientMemory& memory,
                         uint64_t rename_bytes_max) = 0;
  // The memory that one launch touches, or why that is not known. Prove() makes orders from it.
  virtual LaunchTouches Touches(const LaunchToProve& launch, const ClientMemory& memory) = 0;
};

std::unique_ptr<RunProver> MakeRunProver();

// As a library beside the client's, with one function.
inline constexpr char kProverPluginName[] = "liblaneway_prover.so";
inline constexpr char kMakeProverSymbol[] = "LanewayMakeRunProver";
// The caller owns the result.
using MakeProverFunction = RunProver*();

}  // namespace replay
