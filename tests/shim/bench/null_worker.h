// A worker process that does what is asked of memory and nothing else: what is measured against it
// is the client, the codec, the transport and the worker's dispatch, with no driver behind.
//
// Runs in a child process; device memory is a private buffer. Thread safety: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ipc/channel.h"
#include "ipc/door.h"
#include "ipc/driver_table.h"
#include "ipc/session_file.h"

namespace bench {

class NullWorker : public ipc::Session, public ipc::LanewayCalls {
 public:
  NullWorker(ipc::SessionFile file, ipc::Channel channel, uint32_t slot, int pinned_fd);
  // Until the session is marked lost.
  void Serve();

  bool Translate(ipc::HandleKind kind, ipc::HandleId id, void** driver_handle) override;
  bool MayName(ipc::HandleKind, ipc::HandleId) override { return true; }
  void Bind(ipc::HandleKind, ipc::HandleId, void*) override {}
  void Release(ipc::HandleKind, ipc::HandleId) override {}
  bool Accepts(uint64_t address, uint64_t bytes) override;
  bool AcceptsMatrix(uint64_t, void*) override { return true; }
  bool UsePointerMode(ipc::HandleKind, void*, bool) override { return true; }
  std::span<std::byte> Scratch() override { return {scratch_.get(), ipc::kBodyBytesMax}; }

#define CALL(fn, ...) ipc::laneway::fn fn;
#include "ipc/calls/laneway.inc"
#undef CALL

 private:
  void ServeOne(std::span<const std::byte> message);
  CUresult Place(CUstream stream, const ipc::Mark& mark);
  std::byte* At(uint64_t address);

  ipc::SessionFile file_;
  ipc::Channel channel_;
  ipc::Targets targets_;
  std::unique_ptr<std::byte[]> scratch_;
  std::unique_ptr<std::byte[]> reply_;
  std::byte* device_ = nullptr;
  uint64_t base_ = 0;
};

}  // namespace bench
