// A worker in the test's own process: a thread behind a real session file that serves the client's
// messages through the real codec, on a pretended device.
//
// Device memory is a shadow of the arena; everything happens at once and in order. What a test
// wants to see is recorded; with Hold() marks are kept back, as if the device were busy. Thread
// safety: the inspection methods from any thread; one object per process.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ipc/channel.h"
#include "ipc/door.h"
#include "ipc/driver_table.h"
#include "ipc/session_file.h"
#include "ipc/tables.h"

namespace shim_test {

struct SeenLaunch {
  std::string function;
  unsigned grid[3], block[3], shared_bytes;
  uint64_t stream;  // the client's name; 1: legacy
  std::vector<std::byte> params;
  std::vector<ipc::LaunchAttribute> attributes;
};

class FakeWorker : public ipc::Session, public ipc::LanewayCalls {
 public:
  // Makes the session, connects the process's client to it and starts the thread. Once per process.
  static FakeWorker& Start(uint32_t worker_pid = 0, const ipc::Tables& tables = ipc::OwnTables(),
                           uint32_t devices = 2);

  // Keeps marks back until Release().
  void Hold() { held_.store(true); }
  void Release();

  std::vector<SeenLaunch> launches();
  std::map<std::string, int> counts();                     // calls by name
  std::vector<std::pair<uint32_t, uint32_t>> TakeEdges();  // of graphs, since the last call
  std::byte* Shadow(uint64_t address) { return shadow_ + (address - arena_base_); }
  ipc::SessionPage* page() { return file_->page(); }
  void Stop();
  // Answers `result` to the next call of this name.
  void FailNext(const std::string& name, CUresult result);

  // --- ipc::Session
  bool Translate(ipc::HandleKind kind, ipc::HandleId id, void** driver_handle) override;
  bool MayName(ipc::HandleKind kind, ipc::HandleId id) override;
  void Bind(ipc::HandleKind kind, ipc::HandleId id, void* driver_handle) override;
  void Release(ipc::HandleKind kind, ipc::HandleId id) override;
  bool Accepts(uint64_t address, uint64_t bytes) override;
  bool AcceptsMatrix(uint64_t address, void*) override { return Accepts(address, 1); }
  bool UsePointerMode(ipc::HandleKind, void*, bool) override { return true; }
  std::span<std::byte> Scratch() override { return {scratch_.get(), ipc::kBodyBytesMax}; }

  // --- ipc::LanewayCalls
#define CALL(fn, ...) \
  ipc::laneway::fn fn;  // each overrides; the grammar of a typedef leaves no place to say so
#include "ipc/calls/laneway.inc"
#undef CALL

 private:
  FakeWorker() = default;
  void Serve();
  void ServeOne(std::span<const std::byte> message);
  CUresult Place(CUstream stream, const ipc::Mark& mark);
  void Ring();
  uint32_t SlotOf(CUstream stream);
  CUresult Fault(const char* name);

  std::unique_ptr<ipc::SessionFile> file_;
  ipc::Channel channel_;
  ipc::DriverTable driver_;
  std::unique_ptr<std::byte[]> scratch_;
  std::thread thread_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> held_{false};
  uint64_t arena_base_ = 0;
  std::byte* shadow_ = nullptr;

  std::mutex mutex_;          // of what follows
  uint32_t call_device_ = 0;  // of the call being served
  std::map<std::pair<ipc::HandleKind, ipc::HandleId>, void*> handles_;
  std::map<void*, uint32_t> slots_;  // by driver stream
  std::vector<std::pair<uint32_t, uint64_t>> kept_back_;
  std::vector<SeenLaunch> launches_;
  std::map<std::string, int> counts_;
  std::map<std::string, CUresult> faults_;
  std::vector<std::pair<uint32_t, uint32_t>> edges_;
  std::map<void*, std::string> functions_;
  std::map<void*, CUmodule> modules_;  // of functions
  std::vector<std::byte> image_;
  ipc::ModuleHash image_hash_;
  uint64_t next_handle_ = 0x1000;
};

}  // namespace shim_test
