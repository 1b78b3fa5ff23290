// The values of all registers and memory cells of one kernel: the fixed point that kernel_access.h
// stands on. Internal to replay/.
//
// A cell is a piece of memory that the analysis tells apart: each local variable, parameter or
// result of a function, all local memory whose address is taken, and all shared memory. Thread
// safety: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "replay/kernel_access.h"
#include "softgpu/ptx/ir.h"

namespace replay {

class DataFlow {
 public:
  explicit DataFlow(const softgpu::ptx::KernelImpl& kernel);

  // Until nothing changes any more.
  void Solve();
  // Why not; empty when the values are right.
  const std::string& failed() const { return failed_; }

  // Origins that the kernel uses, at most kOriginsMax.
  const std::vector<Origin>& origins() const { return origins_; }
  // Of a value, or of an address ("[%rd1+8]").
  Origins ValueOf(const softgpu::ptx::Function& function, const softgpu::ptx::Operand& operand);

 private:
  using Function = softgpu::ptx::Function;
  using Instruction = softgpu::ptx::Instruction;
  using Operand = softgpu::ptx::Operand;
  // Where in the kernel's parameters a register points: an offset, or one of these.
  static constexpr int64_t kNowhere = -1, kAnywhere = -2;
  struct State {  // of a function
    std::vector<Origins> registers, cells;
    std::vector<bool> address_taken;    // by symbol: its cell is local_ then
    std::vector<int64_t> parameter_at;  // by register, of the entry
  };

  void FindTaken(const Function& function);
  void Step(const Function& function, const Instruction& i);
  void Move(const Function& function, const Instruction& i);
  void Load(const Function& function, const Instruction& i);
  void Store(const Function& function, const Instruction& i);
  void Atomic(const Function& function, const Instruction& i);
  void Call(const Function& function, const Instruction& i);
  void Compute(const Function& function, const Instruction& i);
  void PointAtParameter(const Function& function, const Instruction& i);

  Origins LoadedFrom(const Function& function, const Instruction& i, const Operand& address,
                     uint32_t skip, uint32_t bytes);
  Origins FromMemory(const Origins& address);
  Origins ParameterBytes(uint32_t offset, uint32_t bytes);
  Origins AnyParameter();
  // Memory that only this kernel sees: null when the access is to other memory, too.
  Origins* CellOf(const Function& function, const Instruction& i, const Operand& address);
  void Write(const Function& function, const Operand& to, const Origins& value);
  uint32_t OriginOf(Origin origin);
  void Fail(const std::string& why, int line);

  const softgpu::ptx::KernelImpl& kernel_;
  std::map<const Function*, State> states_;
  std::vector<Origin> origins_;
  Origins local_, shared_;  // memory that is reached through addresses
  bool changed_ = false;
  std::string failed_;
};

}  // namespace replay
