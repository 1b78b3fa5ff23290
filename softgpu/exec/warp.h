// What an executing warp is made of, and what one decoded instruction is. Read by every semantic
// function, also by those compiled for newer instruction sets: includes nothing that emits inline
// functions.
//
// Registers live in the frame of the running function as arrays over the 32 lanes (a predicate is
// one 32-bit mask); operands are byte offsets into the frame, constants too. A semantic function
// does its work for the lanes in Warp::mask and returns the next instruction, or null to leave the
// run loop with Warp::stop set. Lanes that took other paths are parked as groups; scheduler.h says
// when they run. Thread safety: a warp belongs to the one thread that runs its block.
#pragma once

#include <cstddef>
#include <cstdint>

namespace softgpu::exec {

inline constexpr uint32_t kLanes = 32;
inline constexpr uint32_t kFullMask = ~0u;

struct Inst;
struct Warp;
struct Block;
struct FunctionCode;
using Handler = const Inst* (*)(const Inst*, Warp*);
// What a barrier returns where the warp came to it with all its lanes, in step with the others.
inline const Inst* const kAtBarrier = reinterpret_cast<const Inst*>(uintptr_t{2});

struct alignas(64) Inst {
  Handler run = nullptr;
  Handler inner = nullptr;                     // what a wrapper (guard, rounding mode) calls
  uint32_t d = 0, a = 0, b = 0, c = 0, e = 0;  // offsets in the frame
  uint32_t guard = 0;                          // offset of the guard predicate; lowest bit: negated
  uint64_t imm = 0;  // address offset, jump target, mode bits: the handler says
  uint32_t aux = 0;  // MemoryShape, MXCSR: the handler says
  int line = 0;      // in the PTX text
};
static_assert(sizeof(Inst) == 64);

// Inst::aux of loads and stores.
struct MemoryShape {
  uint8_t element_bytes;
  uint8_t register_bytes;
  uint8_t vector : 4;
  uint8_t is_signed : 1;
  uint8_t narrow_address : 1;  // the address register has 32 bits
  uint8_t is_store : 1;
  uint8_t is_volatile : 1;  // or stronger: done by itself, in order
  uint8_t space;            // ptx::Space
};
static_assert(sizeof(MemoryShape) == 4);

// Why the run loop ended.
// kInVain: as kYield, and all that ran were rounds of loops that only wait.
enum class Stop : uint8_t { kDone, kBlocked, kYield, kInVain, kFault };

// kOthers: in a loop that only waits, for others to write memory; may run, but is no use before.
enum class Wait : uint8_t { kReady, kBarrier, kWarpSync, kOthers };

// One activation of a function. Lanes that entered it together leave it one by one.
struct Frame {
  Frame* parent = nullptr;
  Frame* below = nullptr;  // the frame under this one on the warp's stack
  const FunctionCode* code = nullptr;
  const Inst* call = nullptr;  // in the parent: what to do on return
  std::byte* regs = nullptr;
  uint32_t lanes = 0;  // still inside
  uint32_t depth = 0;
  uint32_t local_base = 0;    // offset of this activation in each lane's local memory
  uint32_t alloca_bytes = 0;  // taken behind the function's own local memory
};

// Lanes that wait at one place.
struct Group {
  uint32_t mask = 0;
  uint32_t sync_mask = 0;  // kWarpSync: lanes that must come
  Wait wait = Wait::kReady;
  uint8_t barrier = 0;    // kBarrier
  bool released = false;  // its warp barrier is met: do not wait again
  const Inst* pc = nullptr;
  Frame* frame = nullptr;
};

// How a warp's groups share the time that it has.
struct Turn {
  bool fair = false;  // the running group keeps running though another group is ahead
  // The last round of a loop that only waits: its branch, and the lanes that went back there.
  const Inst* spin_at = nullptr;
  uint32_t spin_mask = 0;
  // Places where lanes may meet (Continue) until the waiting lanes try again, and how many there
  // will be after the next round in vain.
  uint32_t rest = 0, patience = 1;
  bool in_vain = false;  // so far the warp has done nothing but such rounds
};

struct alignas(64) Warp {
  std::byte* regs = nullptr;  // of the running frame
  uint32_t mask = 0;          // lanes running
  uint32_t parked_count = 0;
  int32_t fuel = 0;               // backward branches until the scheduler looks around
  uint32_t live = 0;              // lanes launched and not exited
  const Inst* pc = nullptr;       // the barrier of kAtBarrier
  const Inst* current = nullptr;  // the last instruction that may have faulted
  Frame* frame = nullptr;         // running
  Frame* top_frame = nullptr;     // last on the stack; the entry's frame lies elsewhere
  std::byte* stack_top = nullptr;
  std::byte* stack_end = nullptr;
  Block* block = nullptr;
  std::byte* shared = nullptr;
  uint64_t shared_bytes = 0;
  std::byte* local = nullptr;  // lane l's at l * local_stride
  uint32_t local_stride = 0;
  uint32_t launched = 0;  // lanes that exist
  uint32_t index = 0;     // in the block
  Stop stop = Stop::kDone;
  bool resumed = false;  // Group::released of the running lanes; the instruction clears it
  bool in_step = false;  // may return kAtBarrier
  // What compiled code (softgpu/jit) reads and leaves here besides.
  uint32_t left = 0, left_mask = 0;  // entry after the last exit, and the lanes that took it
  uint32_t place[9];                 // %ntid, %ctaid, %nctaid: x, y, z each
  const std::byte* parameters = nullptr;
  uint64_t parameter_bytes = 0;
  // Where lanes run a loop one after another: its beginning, from where all of them find a page
  // fault again when `lockstep` tells them to run it together.
  const Inst* again = nullptr;
  bool lockstep = false;
  // Where the access of `current` goes, for a page fault. Form 0: as the registers say; 1:
  // access[0] and on by access_stride; 2: as the array says.
  uint64_t access_form = 0, access_stride = 0;
  alignas(64) uint64_t access[kLanes];
  uint32_t tid[3][kLanes];
  Group parked[kLanes];
  Turn turn;
  // What Resolve() was last asked for: instructions that go through it may have no MemoryShape.
  struct {
    const Inst* by = nullptr;
    uint64_t address = 0;
    uint32_t bytes = 0;
    uint8_t lane = 0;
    bool is_store = false;
  } resolved;
};

// A handler by what it does; the tables that the files in simd/ export.
struct HandlerRow {
  uint32_t key;
  Handler run;
};

struct HandlerRows {
  const HandlerRow* rows;
  size_t count;
};

}  // namespace softgpu::exec
