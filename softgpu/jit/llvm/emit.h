// Emits LLVM IR for one program: a function that is entered at some instructions of a warp's code
// and works on all its lanes at once.
//
// A register is a local variable that LLVM's mem2reg turns into values: one scalar where it is
// uniform or linear in the lane, else a vector over the lanes. Inactive lanes of a vector hold
// anything; the frame gets active lanes only. Thread safety: none.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <set>

#include "softgpu/jit/llvm/flow.h"

namespace softgpu::jit {

// What the processor does well.
struct Abilities {
  bool gathers = false;   // loads lanes from places of their own with one instruction
  bool scatters = false;  // stores them likewise
};

class Emitter {
 public:
  Emitter(const Flow& flow, llvm::Module* module, Abilities host);
  void Run();

 private:
  using Value = llvm::Value;

  // A value and how it depends on the lane.
  struct Result {
    Value* value = nullptr;  // a scalar (the base when linear), or a vector
    Form form;
  };

  // emit.cc: the frame, registers, ways in and out.
  void Begin();
  void EmitEntry(uint32_t n);
  void EmitInstruction(uint32_t n);
  void CheckForms(const std::vector<uint32_t>& registers, Value* trusted);
  Value* Pointer(Value* base, uint64_t offset, llvm::Type* type);
  Value* PointerAt(Value* address, llvm::Type* type);  // from an integer
  Value* WarpField(size_t offset, llvm::Type* type);   // its address
  Value* LoadWarp(size_t offset, llvm::Type* type);
  llvm::Type* ScalarType(Kind kind);
  llvm::Type* VectorOf(llvm::Type* scalar);
  llvm::Type* TypeOf(Kind kind, Form form);
  Value* Ramp(llvm::Type* scalar, int64_t stride);
  Value* MakeVector(Result result, Kind kind);
  Result Read(Place place);
  Value* ReadVector(Place place) { return MakeVector(Read(place), place.kind); }
  Value* ReadScalar(Place place) { return Read(place).value; }
  void Write(Place place, Result result, Value* guard = nullptr);
  Value* GuardOf(const ProgramInst& i);  // i1 or a vector of them; null without a guard
  void Spill(uint32_t reg);
  void Fill(uint32_t reg);
  void Leave(uint32_t n);
  void SpillFor(uint32_t n);
  void LeaveSpilt(uint32_t n);
  bool NeedsInFrame(uint32_t n, uint32_t offset) const;
  void CallHandler(uint32_t n);
  Value* RunHandler(uint32_t n);
  llvm::BasicBlock* NewBlock(const char* name);
  // A branch that nearly always goes to `usual`: values stay in registers there.
  void Expect(Value* condition, llvm::BasicBlock* usual, llvm::BasicBlock* unusual);
  Value* Bits(Value* lanes);  // a vector of i1 as i32
  // The lanes that run.
  Value* Mask() { return b_.CreateLoad(b_.getInt32Ty(), lanes_); }
  Value* MaskVector() { return b_.CreateBitCast(Mask(), VectorOf(b_.getInt1Ty())); }
  Value* Full() { return b_.CreateICmpEQ(Mask(), b_.getInt32(exec::kFullMask)); }
  Value* FirstLane();  // as i64
  Value* CodeAt(uint32_t n);

  // emit_control.cc
  void BeginWarp();
  void EndWarps();
  void EmitBranch(uint32_t n);
  void EmitSplit(uint32_t n, Value* taken);
  struct Settled {
    llvm::AllocaInst* done;  // i1: the frame has them
    Set registers;
  };
  void FindSettled();
  void Settle(uint32_t n);
  void EmitLeavesLoop(uint32_t wait, uint32_t stay, Value* taken);
  std::vector<uint32_t> WrittenBy(uint32_t n) const;
  void EmitJoin(uint32_t n);
  void GoTo(uint32_t from, uint32_t to);
  void EmitShuffle(uint32_t n);
  void EmitBarrier(uint32_t n);
  void EmitExit(uint32_t n);
  void Finish(Value* result);

  // emit_rows.cc
  void EmitRow(uint32_t n);
  void EmitSpecial(uint32_t n);
  void EmitParameter(uint32_t n);
  Value* Compute(const ProgramInst& i, const Row& row, const std::vector<Value*>& v);
  Value* ComputeInteger(const ProgramInst& i, const Row& row, const std::vector<Value*>& v);
  Value* ComputeBits(const ProgramInst& i, const Row& row, const std::vector<Value*>& v);
  Value* ComputeFloat(const Row& row, const std::vector<Value*>& v);
  Value* ComputeInternal(const ProgramInst& i, const Row& row, const std::vector<Value*>& v);
  Value* Convert(const ProgramInst& i, const Row& row, Value* v);
  Value* ConvertGeneral(const ProgramInst& i, const Row& row, Value* v);
  Value* FloatToInteger(const Row& row, Value* v);
  Value* Compare(const Row& row, Value* a, Value* b);
  Value* Predicates(const ProgramInst& i, const Row& row, const std::vector<Value*>& v);
  Value* DivApprox(Value* a, Value* b);
  Value* MinMax(Value* a, Value* b, bool max, llvm::Type* bits);
  Value* CanonicalNan(Value* x);
  Value* AsFloat(Value* v, exec::Type type);
  Value* AsBits(Value* v);
  llvm::Type* Like(Value* v, llvm::Type* scalar);  // scalar, or a vector of it as v is
  Value* Number(Value* like, uint64_t bits);       // an integer constant of v's type
  bool KeepsLinear(uint32_t n, const Row& row, const std::vector<Value*>& v);

  // emit_memory.cc
  void EmitAccess(uint32_t n);
  struct Memory;  // one access on its way
  Memory MemoryOf(uint32_t n);
  bool LoadsForNothing(uint32_t n) const;
  void AccessScalar(const Memory& m);
  void AccessLinear(const Memory& m);
  void AccessLanes(const Memory& m);
  void MoveScalar(const Memory& m, Value* address);
  void MoveContiguous(const Memory& m, Value* first);
  void MoveMasked(const Memory& m, Value* first);
  void MoveScattered(const Memory& m, Value* addresses);
  void MoveByLane(const Memory& m, Value* addresses);
  void RecordPlaces(const Memory& m, Value* addresses);
  Value* RecordedPlace(uint32_t lane, llvm::Type* type);  // a pointer
  Value* Concatenated(std::vector<Value*> pieces);        // a power of two of them
  Value* Joined(const Memory& m);
  void WriteLoaded(const Memory& m, Value* loaded, Value* guard);
  Value* Offset(const Memory& m, Value* address);  // the address register's value as an address
  Value* InBounds(const Memory& m, Value* address, uint64_t bytes);
  Value* Located(const Memory& m, Value* address);  // where it lies in this process
  Value* Extended(const Memory& m, Value* element);
  Value* Narrowed(const Memory& m, Value* value);
  void Record(const Memory& m, Value* addresses, uint64_t stride);

  // emit_adjacent.cc: loads near each other, of words near each other, done as one.
  struct Adjacent {
    llvm::AllocaInst* loaded;               // i1: the others need no access of their own
    std::vector<llvm::AllocaInst*> values;  // by word
  };
  void FindAdjacent();
  void FindAdjacentTo(uint32_t first);
  bool MayBeAdjacent(uint32_t n, Access* access) const;
  void LoadTogether(const Memory& m, Value* addresses);
  void TakeLoaded(const Memory& m, llvm::BasicBlock* end);
  std::vector<Value*> Transposed(const std::vector<Value*>& pieces, uint32_t words);

  // emit_lanes.cc: loops that one lane after another runs to its end.
  struct LaneRegister {
    bool comes_in, goes_out;
    llvm::AllocaInst *now, *ended;  // the running lane's; of those that have ended, if it goes out
  };
  struct LaneByLane {
    uint32_t last;                               // its branch
    std::map<uint32_t, LaneRegister> registers;  // that are the lane's own while it runs
    // Lanes yet to end; fuel of the one that runs, and the least that one ended with.
    llvm::AllocaInst *rest, *fuel, *least_fuel;
    llvm::AllocaInst* gave_up;  // i1: in step from here on
    llvm::BasicBlock* branch;   // of the lanes in step
  };
  bool MayRunLaneByLane(uint32_t head, uint32_t last, LaneByLane* loop) const;
  void FindLaneByLane();
  void BeginLaneByLane(uint32_t n);
  void EmitLaneByLane(uint32_t head, LaneByLane* loop);
  void LoadForLane(uint32_t n, uint32_t last, llvm::BasicBlock* give_up,
                   std::set<uint32_t>* checked);
  void FillLane(const LaneByLane& loop, Value* lane);
  void EndLane(const LaneByLane& loop, Value* lane);
  void Regroup(const LaneByLane& loop, Value* fuel);

  const Flow& flow_;
  llvm::Module* module_;
  const Abilities host_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> b_;
  llvm::Function* function_ = nullptr;
  std::vector<llvm::AllocaInst*> variables_;
  std::vector<llvm::BasicBlock*> blocks_;  // of leaders
  std::map<uint32_t, Settled> settled_;    // by branch
  std::vector<Adjacent> adjacent_;
  std::map<uint32_t, std::pair<size_t, uint32_t>> words_;  // loads in adjacent_: which, which word
  std::map<uint32_t, LaneByLane> loops_by_lane_;           // by head
  const LaneByLane* lane_by_lane_ = nullptr;               // while the code of a lane is emitted
  std::map<uint32_t, Value*> unknown_constants_;
  Value *code_ = nullptr, *warp_ = nullptr, *handlers_ = nullptr, *regs_ = nullptr;
  llvm::AllocaInst* lanes_ = nullptr;    // that run: fewer and fewer
  llvm::AllocaInst* nowhere_ = nullptr;  // where accesses of other lanes go
  Value *shared_ = nullptr, *shared_bytes_ = nullptr, *parameters_ = nullptr;
  llvm::BasicBlock* refused_ = nullptr;
  llvm::BasicBlock* next_warp_ = nullptr;                    // where a warp has finished in step
  llvm::PHINode *warp_phi_ = nullptr, *finished_ = nullptr;  // finished_: what its handler returns
  llvm::FunctionType* handler_type_ = nullptr;
};

}  // namespace softgpu::jit
