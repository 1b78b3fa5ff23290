// A recorded function: one iteration of a CUDA program as data, so that the iteration runs again
// without the program (Nimble, section 4: an execution trace that needs no framework).
//
// The iteration is a row of steps: calls in the form that crosses from client to worker
// (ipc/codec.h), uploads of inputs, and downloads of outputs. Around them is what the steps stand
// on: module images, the calls that made functions and library handles, and the device memory that
// outlives an iteration. All addresses are those of the recorded program; who runs the function
// moves them (functions/relocation.h). Samples are recorded iterations: what came in, what went
// out.
//
// Thread safety: values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace functions {

using Bytes = std::vector<std::byte>;

struct Image {
  std::array<uint64_t, 4> hash = {};  // BLAKE2b-256, as LoadModule names it
  Bytes bytes;
};

// One call: its number in the tables of calls (ipc/calls.h), and its encoded parameters.
struct Call {
  uint16_t op = 0;
  Bytes body;
  bool operator==(const Call&) const = default;
};

// Device memory of the recorded program, by its address there.
struct Block {
  uint64_t base = 0;
  uint64_t bytes = 0;
  Bytes content;  // empty: the block's content between iterations does not matter
  // Of a module's variable: one more than the number of the setup call that tells where it is.
  // 0: memory that is allocated.
  uint32_t variable = 0;
};

enum class StepKind : uint8_t { kCall, kUpload, kDownload };

struct Step {
  StepKind kind = StepKind::kCall;
  uint32_t port = 0;  // of an upload or download: which input or output
  Call call;          // of a call
};

// Where an input goes, or an output comes from: so many bytes of device memory.
struct Port {
  uint64_t address = 0;
  uint64_t bytes = 0;
};

// A parameter of a kernel that differs between iterations: 4 or 8 bytes of a step's call.
struct Scalar {
  uint32_t step = 0;
  uint32_t offset = 0;  // in the call's body
  uint32_t bytes = 0;
  auto operator<=>(const Scalar&) const = default;
};

// One recorded iteration: the bytes of each input, then of each scalar; of each output.
struct Sample {
  std::vector<Bytes> inputs, outputs;
};

struct Function {
  std::vector<Image> images;
  std::vector<Call> setup;  // in the order of making
  std::vector<Block> blocks;
  std::vector<Step> steps;
  std::vector<Port> inputs, outputs;
  std::vector<Scalar> scalars;
  std::vector<Sample> samples;
};

}  // namespace functions
