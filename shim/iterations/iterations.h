// The process's iterations: what the client learns from its own calls, and says to the worker by
// Boundary calls.
//
// Before(): asked under the client's send lock about every call that is device work, before it is
// sent, so that a Boundary stands in the ring before the first operation of the next iteration. The
// rest may come from any thread, without a lock. A program without iterations sends nothing.
//
// The client's allocator uses two functions. ordinal() tells in which iteration an allocation is
// made. The hook of SetHook() is called at each boundary, in the order of the ring and with the
// send lock held. The hook may change the allocator's own state but must not send.
//
// LANEWAY_ITERATIONS_FROM (set by `laneway run --iterations-from`): auto, nvtx, header, none.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "ipc/calls/laneway_calls.h"
#include "shim/iterations/detector.h"
#include "shim/iterations/recorder.h"

namespace shim::iterations {

enum class From : uint8_t { kAuto, kNvtx, kHeader, kNone };

class Iterations {
 public:
  using Hook = void (*)(const ipc::BoundaryInfo& info);

  static Iterations& Process();
  // For tests: what Process() reads from the environment.
  Iterations(From from, const char* record_file);

  // REQUIRES: the send lock. True: this boundary goes first.
  bool Before(Op op, ipc::BoundaryInfo* info) {
    op.synced = synced_.load(std::memory_order_relaxed);
    if (op.synced) synced_.store(false, std::memory_order_relaxed);
    op.live_bytes = live_bytes_.load(std::memory_order_relaxed);
    const uint32_t mark = marked_.load(std::memory_order_relaxed);
    if (!detects_ || mark != 0) return Decide(op, info);
    const Decision decision = detector_.Next(op);
    recognised_.store(detector_.locked(), std::memory_order_relaxed);
    if (!decision.boundary) [[likely]]
      return false;
    info->body = decision.body;
    info->source = ipc::BoundarySource::kDetector;
    return End(info);
  }

  // The program itself says that an iteration ends: laneway_iteration() (source kHeader) or an NVTX
  // range (kNvtx). It counts when the next work is sent. A program that calls laneway_iteration()
  // knows better than the detector, which is silent from then on.
  void Mark(ipc::BoundarySource source);

  void NoteSynchronised() { synced_.store(true, std::memory_order_relaxed); }
  // REQUIRES of both: one call at a time. The caller has the lock under which it counts the bytes.
  void NoteAllocated(uint64_t bytes);
  void NoteFreed(uint64_t bytes);

  // The operations of the iteration that ended last; none when it is too long to be remembered.
  // REQUIRES: the send lock.
  std::vector<Op> LastIteration() const;

  // Boundaries so far: 0 during the first iteration and whatever comes before it.
  uint64_t ordinal() const { return ordinal_.load(std::memory_order_relaxed); }
  // How far the detector is: true once boundaries are to be expected.
  bool recognised() const { return recognised_.load(std::memory_order_relaxed); }
  void SetHook(Hook hook) { hook_.store(hook, std::memory_order_release); }

 private:
  // As Before, where more counts than what the detector finds.
  bool Decide(const Op& op, ipc::BoundaryInfo* info);
  // An iteration ends. Returns true.
  bool End(ipc::BoundaryInfo* info);

  const From from_;
  Detector detector_;                   // under the send lock
  std::unique_ptr<Recorder> recorder_;  // null: nothing is recorded; under the send lock
  std::atomic<uint64_t> ordinal_{0};
  std::atomic<bool> recognised_{false};
  std::atomic<Hook> hook_{nullptr};
  std::atomic<bool> synced_{false};
  std::atomic<uint32_t> marked_{0};  // 1 + source of what the program said since the last work
  // Under the send lock: the program says nothing itself, and nothing is recorded.
  bool detects_;
  bool told_ = false;  // laneway_iteration() was called; under the send lock
  std::atomic<uint64_t> live_bytes_{0};
  std::atomic<uint64_t> peak_bytes_{0};  // since the last boundary
};

}  // namespace shim::iterations
