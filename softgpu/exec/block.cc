#include "softgpu/exec/block.h"

#include <sys/mman.h>

#include <cstring>

#include "softgpu/exec/check.h"

namespace softgpu::exec {
namespace {

size_t RoundUp(size_t value, size_t align) { return (value + align - 1) / align * align; }

// Thread indices of a warp, in the order of the block's linear index.
void NumberThreads(Warp* w, const Dim3& block, uint32_t threads) {
  const uint32_t first = w->index * kLanes;
  w->launched = threads - first >= kLanes ? kFullMask : (1u << (threads - first)) - 1;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t linear = first + lane;
    w->tid[0][lane] = linear % block.x;
    w->tid[1][lane] = linear / block.x % block.y;
    w->tid[2][lane] = linear / block.x / block.y;
  }
}

}  // namespace

bool BlockMemory::Area::Reserve(size_t wanted) {
  if (wanted <= bytes) return true;
  if (data != nullptr) munmap(data, bytes);
  data = nullptr;
  bytes = 0;
  const size_t size = RoundUp(wanted, 1 << 16);
  void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return false;
  data = static_cast<std::byte*>(at);
  bytes = size;
  return true;
}

BlockMemory::Area::~Area() {
  if (data != nullptr) munmap(data, bytes);
}

BlockMemory::~BlockMemory() = default;

bool BlockMemory::Prepare(LaunchState* state) {
  state_ = state;
  const FunctionCode& entry = *state->code->functions[0];
  const size_t frame_bytes = RoundUp(entry.frame_bytes, 64);
  const std::byte* frames_before = frames_.data;
  const std::byte* warps_before = warps_.data;
  if (!warps_.Reserve(sizeof(Warp) * kWarpsMax + sizeof(Frame) * kWarpsMax) ||
      !frames_.Reserve(frame_bytes * state->warps) ||
      !shared_.Reserve(state->shared_bytes_reached() + 64) ||
      !local_.Reserve(size_t{state->code->local_stride} * kLanes * state->warps) ||
      (state->code->calls && !stacks_.Reserve(kStackBytes * state->warps))) {
    return false;
  }
  if (warps_before != warps_.data) {
    for (uint32_t i = 0; i < kWarpsMax; ++i) new (warps_.data + sizeof(Warp) * i) Warp;
    numbered_ = {0, 0, 0};
  }
  if (code_ != state->code || images_ != state->images || frames_before != frames_.data)
    warps_ready_ = 0;
  code_ = state->code;
  images_ = state->images;
  const std::vector<std::byte>& image = images_->by_function[0];
  for (; warps_ready_ < state->warps; ++warps_ready_) {
    std::memcpy(frames_.data + frame_bytes * warps_ready_ + entry.constants_offset, image.data(),
                image.size());
  }
  const Dim3 shape = state->launch->block;
  const bool same_shape =
      shape.x == numbered_.x && shape.y == numbered_.y && shape.z == numbered_.z;
  if (state->checked && shadow_ == nullptr) shadow_ = std::make_shared<SharedShadow>();
  block_.shadow = state->checked ? shadow_.get() : nullptr;
  block_.state = state;
  index_ = state->blocks;  // none has begun
  block_.intact = false;
  block_.warps = reinterpret_cast<Warp*>(warps_.data);
  block_.warp_count = state->warps;
  block_.stacks = stacks_.data;
  for (uint32_t i = 0; i < state->warps; ++i) {
    Warp* w = &block_.warps[i];
    w->index = i;
    w->block = &block_;
    w->shared = shared_.data;
    w->shared_bytes = state->shared_bytes_reached();
    w->local_stride = state->code->local_stride;
    w->parameters = state->launch->parameters.data();
    w->parameter_bytes = state->launch->parameters.size();
    const Dim3 &block = state->launch->block, &grid = state->launch->grid;
    for (const auto& [at, size] : {std::pair{0, block}, std::pair{6, grid}}) {
      w->place[at] = size.x;
      w->place[at + 1] = size.y;
      w->place[at + 2] = size.z;
    }
    w->local = local_.data + size_t{w->local_stride} * kLanes * i;
    if (!same_shape) NumberThreads(w, shape, state->threads);
  }
  numbered_ = shape;
  return true;
}

// Every warp in the entry's frame, with nothing on its stack.
void BlockMemory::BuildFrames() {
  const FunctionCode& entry = *state_->code->functions[0];
  const size_t frame_bytes = RoundUp(entry.frame_bytes, 64);
  Frame* frames = reinterpret_cast<Frame*>(warps_.data + sizeof(Warp) * kWarpsMax);
  for (uint32_t i = 0; i < block_.warp_count; ++i) {
    Warp* w = &block_.warps[i];
    Frame* frame = new (&frames[i]) Frame;
    frame->code = &entry;
    frame->regs = frames_.data + frame_bytes * i;
    w->frame = w->top_frame = frame;
    w->regs = frame->regs;
    w->stack_top = block_.stacks == nullptr ? nullptr : block_.stacks + kStackBytes * i;
    w->stack_end = block_.stacks == nullptr ? nullptr : w->stack_top + kStackBytes;
    w->parked_count = 0;
    w->turn.fair = false;
    w->resumed = false;
  }
  block_.intact = true;
}

// Where block `index` lies in the grid: mostly behind the one before.
void BlockMemory::Number(uint64_t index) {
  const Dim3& grid = state_->launch->grid;
  Dim3& id = block_.id;
  if (index == index_ + 1 && id.x + 1 < grid.x) {
    ++id.x;
  } else {
    id = {static_cast<uint32_t>(index % grid.x), static_cast<uint32_t>(index / grid.x % grid.y),
          static_cast<uint32_t>(index / grid.x / grid.y)};
  }
  index_ = index;
}

Block* BlockMemory::Start(uint64_t index) {
  Number(index);
  if (block_.shadow != nullptr) {
    block_.shadow->Begin(state_->shared_bytes, block_.warp_count);
    FillPoison(shared_.data, 0, state_->shared_bytes);
    const uint64_t stride = state_->code->local_stride;
    for (uint64_t t = 0; t < uint64_t{block_.warp_count} * kLanes; ++t) {
      FillPoison(local_.data + t * stride, 0, stride);
    }
  }
  for (; block_.barriers_in_use != 0; block_.barriers_in_use &= block_.barriers_in_use - 1)
    block_.barriers[__builtin_ctz(block_.barriers_in_use)] = Barrier{};
  if (!block_.intact) BuildFrames();
  for (uint32_t i = 0; i < block_.warp_count; ++i) {
    Warp* w = &block_.warps[i];
    w->live = w->mask = w->frame->lanes = w->launched;
    w->in_step = false;
    w->stop = Stop::kBlocked;
    w->current = nullptr;
    w->access_form = 0;
    w->left = 0;
    w->turn.spin_at = nullptr;
    w->turn.rest = 0;
    w->place[3] = block_.id.x;
    w->place[4] = block_.id.y;
    w->place[5] = block_.id.z;
  }
  block_.rounds_in_vain = 0;
  block_.begins = state_->code->functions[0]->code.data();
  return &block_;
}

}  // namespace softgpu::exec
