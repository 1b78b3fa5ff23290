// Makes the recorded calls of a function: a call's names become handles of this process, its
// addresses those of this process's memory, and the vendor's function is called.
//
// Nothing in a recorded call is trusted: the codec that serves clients' requests decodes it
// (ipc/codec_worker.h), and this object is the session that the codec asks. There is one stream:
// whatever stream was recorded, a call goes there.
//
// Thread safety: none.
#pragma once

#include "ipc/calls/vendor.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "functions/function.h"
#include "functions/player/emitter.h"
#include "functions/relocation.h"
#include "ipc/codec_worker.h"
#include "ipc/door.h"

namespace functions {

class Caller final : public ipc::Session {
 public:
  // What the calls stand on. All of it outlives this object.
  struct Ground {
    const ipc::Targets* targets = nullptr;
    const std::vector<Image>* images = nullptr;
    const Relocation* relocation = nullptr;
    CUstream stream = nullptr;
    Emitter* emitter = nullptr;
  };
  explicit Caller(const Ground& ground);

  // `step`: the call's number in the function, for kernels; of calls of the setup, any. Fails with
  // a sentence.
  absl::Status MakeUntrusted(const Call& call, uint32_t step);
  // What the last GetGlobal has told; 0 before the first.
  CUdeviceptr variable() const { return variable_; }
  size_t variable_bytes() const { return variable_bytes_; }

  // --- ipc::Session
  bool Translate(ipc::HandleKind kind, ipc::HandleId id, void** driver_handle) override;
  bool MayName(ipc::HandleKind kind, ipc::HandleId id) override;
  void Bind(ipc::HandleKind kind, ipc::HandleId id, void* driver_handle) override;
  void Release(ipc::HandleKind kind, ipc::HandleId id) override;
  bool Accepts(uint64_t address, uint64_t bytes) override;
  bool AcceptsMatrix(uint64_t address, void* layout) override;
  bool UsePointerMode(ipc::HandleKind kind, void* driver_handle, bool device) override;
  std::span<std::byte> Scratch() override;

 private:
  using Work = std::variant<std::monostate, Kernel, Fill, RowCopy>;
  using Piece = std::vector<Work>;

  static uint32_t Invoke(void* caller, const ipc::Slot* slots);
  uint32_t Vendors(const ipc::Slot* slots);
  CUresult Own(const ipc::Slot* slots);
  CUresult LoadModule(const ipc::Slot* slots);
  CUresult GetFunction(const ipc::Slot* slots);
  CUresult GetGlobal(const ipc::Slot* slots);
  CUresult Launch(const ipc::Slot* slots);
  CUresult CopyDevice(const ipc::Slot* slots);
  CUresult GraphBegin(const ipc::Slot* slots);
  CUresult GraphNode(const ipc::Slot* slots, Work work);
  CUresult GraphLaunch(const ipc::Slot* slots);
  // The kernel of a GraphKernel or GraphSetKernel, whose dimensions begin at this parameter.
  Kernel KernelOf(const ipc::Slot* slots, size_t grid, size_t parameters) const;
  Bytes Parameters(const void* packed, size_t bytes) const;

  const Ground ground_;
  const ipc::DriverTable& driver_;
  std::map<std::pair<ipc::HandleKind, ipc::HandleId>, void*> handles_;
  std::vector<std::unique_ptr<Piece>> pieces_;  // what handles of graphs point at
  std::map<void*, bool> on_device_;             // where library handles read scalars
  const std::unique_ptr<std::byte[]> scratch_;
  // Of the call that is being made.
  ipc::Op op_{};
  uint32_t step_ = 0;
  CUdeviceptr variable_ = 0;
  size_t variable_bytes_ = 0;
};

}  // namespace functions
