// Device functions: frames on the warp's stack, arguments copied between local memories.
#include <cstring>

#include "base/find.h"
#include "softgpu/exec/builtins.h"
#include "softgpu/exec/handlers.h"
#include "softgpu/exec/schedule.h"

namespace softgpu::exec {
namespace {

std::byte* LocalOf(const Warp* w, uint32_t lane) {
  return w->local + size_t{lane} * w->local_stride;
}

void CopyPieces(Warp* w, uint32_t lanes, uint32_t from_base,
                const std::vector<CallPlan::Piece>& from, uint32_t to_base,
                const std::vector<CallPlan::Piece>& to) {
  const size_t count = std::min(from.size(), to.size());
  for (uint32_t m = lanes; m != 0; m &= m - 1) {
    std::byte* local = LocalOf(w, __builtin_ctz(m));
    for (size_t k = 0; k < count; ++k) {
      std::memcpy(local + to_base + to[k].offset, local + from_base + from[k].offset,
                  std::min(from[k].bytes, to[k].bytes));
    }
  }
}

std::vector<CallPlan::Piece> Pieces(const ptx::Function& function,
                                    const std::vector<uint32_t>& symbols) {
  std::vector<CallPlan::Piece> pieces;
  for (uint32_t s : symbols) {
    pieces.push_back(
        {function.symbols[s].offset, static_cast<uint32_t>(function.symbols[s].bytes)});
  }
  return pieces;
}

// A new frame for `code` on top of the warp's stack, or null when that is full.
Frame* PushFrame(Warp* w, const FunctionCode* code, uint32_t lanes) {
  const size_t bytes = sizeof(Frame) + 63 + code->frame_bytes;
  std::byte* top = w->stack_top;
  if (top == nullptr || top + bytes > w->stack_end) return nullptr;
  Frame* frame = new (top) Frame;
  const uint64_t regs = (reinterpret_cast<uint64_t>(top) + sizeof(Frame) + 63) & ~uint64_t{63};
  frame->regs = reinterpret_cast<std::byte*>(regs);
  frame->below = w->top_frame;
  frame->code = code;
  frame->lanes = lanes;
  w->top_frame = frame;
  w->stack_top = reinterpret_cast<std::byte*>((regs + code->frame_bytes + 63) & ~uint64_t{63});
  const std::vector<std::byte>& image = w->block->state->images->by_function[code->index];
  if (!image.empty()) {
    std::memcpy(frame->regs + code->constants_offset, image.data(), image.size());
  }
  return frame;
}

// The first local byte that `frame` does not use.
uint32_t StackEnd(const Frame* frame) {
  return frame->local_base + (frame->code->local_bytes + 15) / 16 * 16 +
         (frame->alloca_bytes + 15) / 16 * 16;
}

const Inst* Enter(const Inst* ip, Warp* w, const CallPlan& plan, const FunctionCode* target) {
  Frame* caller = w->frame;
  const uint32_t base = StackEnd(caller);
  Frame* frame = uint64_t{base} + target->local_bytes <= w->local_stride
                     ? PushFrame(w, target, w->mask)
                     : nullptr;
  if (frame == nullptr) {
    return RaiseFault(
        ip, w, -1, CUDA_ERROR_LAUNCH_FAILED,
        "stack overflow: calls nested " + std::to_string(caller->depth + 1) + " deep");
  }
  frame->parent = caller;
  frame->depth = caller->depth + 1;
  frame->call = ip;
  frame->local_base = base;
  CopyPieces(w, w->mask, caller->local_base, plan.arguments, base,
             Pieces(*target->source, target->source->parameters));
  w->frame = frame;
  w->regs = frame->regs;
  return target->code.data();
}

// Lanes may call different functions: the first one's lanes go, the others wait at the same call.
const Inst* EnterIndirect(const Inst* ip, Warp* w, const CallPlan& plan) {
  const uint64_t* targets = reinterpret_cast<const uint64_t*>(w->regs + ip->a);
  const int first = __builtin_ctz(w->mask);
  const uint64_t address = targets[first];
  uint32_t lanes = 0;
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    if (targets[__builtin_ctz(m)] == address) lanes |= m & (0 - m);
  }
  const KernelCode& kernel = *w->block->state->code;
  FunctionCode* const callee =
      base::FindOr(kernel.by_source, kernel.kernel->module().FunctionAt(address), nullptr);
  if (callee == nullptr || callee->source->entry) {
    return RaiseFault(ip, w, first, CUDA_ERROR_ILLEGAL_ADDRESS, "call of no function", address);
  }
  if (lanes != w->mask) {
    ParkLanes(w, w->mask & ~lanes, ip);
    w->mask = lanes;
  }
  return Enter(ip, w, plan, callee);
}

}  // namespace

const Inst* Call(const Inst* ip, Warp* w) {
  const CallPlan& plan = w->frame->code->calls[ip->imm];
  switch (plan.kind) {
    case CallPlan::Kind::kDirect:
      return Enter(ip, w, plan, plan.target);
    case CallPlan::Kind::kIndirect:
      return EnterIndirect(ip, w, plan);
    case CallPlan::Kind::kBuiltin:
      return CallBuiltin(ip, w, plan) ? ip + 1 : nullptr;
  }
  return nullptr;
}

const Inst* Return(const Inst* ip, Warp* w) {
  Frame* frame = w->frame;
  Frame* parent = frame->parent;
  if (parent == nullptr) return Exit(ip, w);
  const Inst* call = frame->call;
  const CallPlan& plan = parent->code->calls[call->imm];
  const ptx::Function& source = *frame->code->source;
  if (!plan.results.empty()) {
    CopyPieces(w, w->mask, frame->local_base, Pieces(source, source.results), parent->local_base,
               plan.results);
  }
  LeaveFrame(w, frame, w->mask);
  w->frame = parent;
  w->regs = parent->regs;
  return Continue(w, call + 1);
}

// Lanes of a frame share the layout of its stack: the largest request counts.
const Inst* Alloca(const Inst* ip, Warp* w) {
  uint64_t bytes = 0;
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    uint64_t wanted = 0;
    std::memcpy(&wanted, w->regs + ip->a + __builtin_ctz(m) * ip->aux, ip->aux);
    bytes = std::max(bytes, wanted);
  }
  const uint64_t align = std::max<uint64_t>(ip->imm, 1);
  const uint64_t address = (StackEnd(w->frame) + align - 1) / align * align;
  if (bytes > w->local_stride || address + bytes > w->local_stride) {
    return RaiseFault(ip, w, -1, CUDA_ERROR_LAUNCH_FAILED,
                      "stack overflow: alloca of " + std::to_string(bytes) + " bytes");
  }
  w->frame->alloca_bytes += static_cast<uint32_t>(address + bytes - StackEnd(w->frame));
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    std::memcpy(w->regs + ip->d + __builtin_ctz(m) * ip->aux, &address, ip->aux);
  }
  return ip + 1;
}

const Inst* StackSave(const Inst* ip, Warp* w) {
  const uint64_t end = w->frame->alloca_bytes;
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    std::memcpy(w->regs + ip->d + __builtin_ctz(m) * ip->aux, &end, ip->aux);
  }
  return ip + 1;
}

// While lanes of the frame are elsewhere their memory stays.
const Inst* StackRestore(const Inst* ip, Warp* w) {
  uint64_t end = 0;
  std::memcpy(&end, w->regs + ip->a + __builtin_ctz(w->mask) * ip->aux, ip->aux);
  const bool all = (w->frame->lanes & w->live & ~w->mask) == 0;
  if (all && end <= w->frame->alloca_bytes) w->frame->alloca_bytes = static_cast<uint32_t>(end);
  return ip + 1;
}

void LeaveFrame(Warp* w, Frame* frame, uint32_t lanes) {
  frame->lanes &= ~lanes;
  while (w->top_frame != nullptr && w->top_frame->lanes == 0 && w->top_frame->below != nullptr) {
    w->stack_top = reinterpret_cast<std::byte*>(w->top_frame);
    w->top_frame = w->top_frame->below;
  }
}

}  // namespace softgpu::exec
