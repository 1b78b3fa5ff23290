// A kernel translated for the interpreter: per function a flat array of Inst and the layout of its
// frame.
//
// Frames: [registers][constants]; a constant occupies a register's place, one value in all lanes,
// so that operands need no case. Constants that hold addresses of variables differ between loads of
// a module, so their values are resolved per launch (Images) and cached. Thread safety: immutable
// after Translate, except the cache of Images, which has a mutex.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "softgpu/exec/warp.h"
#include "softgpu/ptx/ir.h"
#include "softgpu/ptx/matrix.h"

namespace softgpu::exec {

struct FunctionCode;

// Copies of bytes between local memories of caller and callee, lane by lane.
struct CallPlan {
  enum class Kind : uint8_t { kDirect, kIndirect, kBuiltin };
  struct Piece {
    uint32_t offset = 0, bytes = 0;  // in the caller's local area
  };
  Kind kind = Kind::kDirect;
  ptx::Builtin builtin = ptx::Builtin::kNone;  // kBuiltin
  const FunctionCode* target = nullptr;        // kDirect
  std::vector<Piece> arguments, results;
};

// Registers of an mma or ldmatrix, by frame offset.
struct MatrixPlan {
  ptx::MatrixShape shape;
  ptx::Type a_type = ptx::Type::kNone, b_type = ptx::Type::kNone;
  ptx::Type c_type = ptx::Type::kNone, d_type = ptx::Type::kNone;
  ptx::Combine combine = ptx::Combine::kNone;
  bool saturates = false, transposes = false, narrow_address = false;
  uint8_t space = 0;
  uint32_t d[4] = {}, a[8] = {}, b[4] = {}, c[4] = {};
};

// Registers of a wmma instruction: the fragment loaded, stored or computed, and the factors.
struct WmmaPlan {
  ptx::Fragment fragment, a, b, c;
  ptx::Combine combine = ptx::Combine::kNone;
  bool column_major = false, has_stride = false, saturates = false, narrow_address = false;
  uint8_t space = 0;
  uint32_t registers[8] = {}, a_registers[8] = {}, b_registers[8] = {}, c_registers[8] = {};
};

// One access of a texture or surface; object and coordinates by frame offset. Data registers are
// the Inst's d, b, c, e.
struct TexturePlan {
  ptx::Geometry geometry = ptx::Geometry::k1D;
  uint32_t flags = 0;             // ptx::Flag
  bool integer = false;           // tex: coordinates
  int8_t gathers = -1;            // tld4: the component
  uint8_t vector = 1, bytes = 4;  // of the data: elements, bytes of each
  uint8_t register_bytes[4] = {};
  uint32_t object = 0;
  uint32_t coordinates[4] = {};
};

struct Constant {
  uint32_t offset = 0;  // in the frame
  uint32_t bytes = 0;   // 2, 4, 8
  uint64_t bits = 0;
  uint32_t variable = ptx::kNoIndex;  // add this variable's address
};

// Machine code of a function. It is entered at some instructions, whose Inst::run leads to it, runs
// on in registers, and goes back by writing the frame and running an instruction's own handler.
struct CompiledFunction {
  // Runs `w` from `pc` and, when that came to a barrier or to its end in step, the next warp of the
  // block, up to `end`; `*running` is the one that runs. Returns what the handlers do for the last
  // one that ran, or kRefused when its registers at `pc` are not as expected.
  using Run = const Inst* (*)(const Inst* code, Warp* w, uint64_t pc, const Handler* handlers,
                              Warp** running, const Warp* end);
  static constexpr uint64_t kRefused = 1;
  Run run = nullptr;
  std::vector<Handler> handlers;  // of every instruction, as translated
  std::shared_ptr<const void> memory;
};

struct FunctionCode {
  const ptx::Function* source = nullptr;
  std::vector<Inst> code;
  std::vector<CallPlan> calls;
  std::vector<MatrixPlan> matrices;
  std::vector<TexturePlan> textures;
  std::vector<WmmaPlan> wmmas;
  std::vector<std::vector<uint32_t>> branch_tables;  // indices of code
  std::vector<Constant> constants;
  uint32_t frame_bytes = 0, constants_offset = 0;
  uint32_t local_bytes = 0;
  uint32_t index = 0;  // in KernelCode::functions
  std::unique_ptr<const CompiledFunction> compiled;
};

// Constant areas of all functions of a kernel for one set of variable addresses.
struct Images {
  std::vector<uint64_t> variables;
  std::vector<std::vector<std::byte>> by_function;
};

class KernelCode final : public ptx::KernelImpl::Translation {
 public:
  const ptx::KernelImpl* kernel = nullptr;
  std::vector<std::unique_ptr<FunctionCode>> functions;  // [0] is the entry
  std::unordered_map<const ptx::Function*, FunctionCode*> by_source;
  bool in_order = false;  // float atomics: blocks one after another
  bool calls = false;
  bool checked = false;
  bool allocates = false;  // has alloca
  uint32_t local_stride = 0;

  std::shared_ptr<const Images> Resolve(std::span<const uint64_t> variables) const;

 private:
  mutable base::Mutex mutex_;
  mutable std::shared_ptr<const Images> images_ GUARDED_BY(mutex_);
};

// Translates once per kernel and keeps the result in it. Never fails: Parse() admits only what has
// rows (tests hold the table against the handlers); an instruction without a handler faults when it
// runs.
// `checked`: with the instructions of check.h, kept apart.
std::shared_ptr<const KernelCode> Translate(const ptx::KernelImpl& kernel, bool checked = false);
// As Translate, but a copy of the caller's own.
std::shared_ptr<KernelCode> TranslateAnew(const ptx::KernelImpl& kernel, bool checked = false);

}  // namespace softgpu::exec
