// One client's session inside the worker: handles, streams, memory, modules, and the thread that
// executes calls.
//
// The worker process (main.cc, control side) makes one Session per attached client and gives it a
// thread that calls Run(). Everything a session needs of the outside comes through Environment: the
// driver's function table, physical memory, and the place to report a poisoned context. A session
// touches no socket.
//
// Thread safety: Run() on its own thread; Stop(), Snapshot() and MemoryBytes() from any thread.
#pragma once

#include "ipc/calls/vendor.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "daemon/worker/extent_source.h"
#include "ipc/channel.h"
#include "ipc/control.h"
#include "ipc/driver_table.h"
#include "ipc/scheduling_terms.h"
#include "ipc/session_file.h"
#include "scheduler/place.h"

namespace worker {

// A context error that nothing in this process survives (CUDA: the process must end).
class PoisonSink {
 public:
  virtual ~PoisonSink() = default;
  // session_id: the culprit, or 0 when it can't be told. text: one sentence for stderr and status.
  // Marks the culprit lost with `code`, and every session that has work in flight with 806. Then
  // the worker exits, and the other sessions go on in another one. Returns.
  virtual void OnPoisoned(uint64_t session_id, CUresult code, const std::string& text) = 0;

  // Set with the first OnPoisoned. No session takes another message then, so the next worker can.
  std::atomic<bool> poisoned{false};
};

class StreamOwners;     // daemon/worker/stream_owners.h
class LaneTable;        // daemon/worker/lanes.h
class JobBooks;         // daemon/worker/jobs.h
class SwapSpace;        // daemon/worker/swap.h
class BackedAddresses;  // daemon/worker/backed_addresses.h
class Board;            // daemon/worker/board.h
class Reaper;           // daemon/worker/reaper.h

// A decision of lanewayd about one session.
using Decision =
    std::variant<ipc::control::AssignLane, ipc::control::MemoryAnswer, ipc::control::Swap>;

// The way to lanewayd. Thread safety: any thread.
class DaemonLink {
 public:
  virtual ~DaemonLink() = default;
  virtual void Post(const ipc::control::WorkerToDaemon& message) = 0;
  // The daemon that listens, counted from 1; 0: none does, so requests get no answer. A new daemon
  // knows nothing of the requests to the last one.
  virtual uint64_t Daemon() const = 0;
};

struct Environment {
  const ipc::DriverTable* driver = nullptr;
  const ipc::CublasTable* cublas = nullptr;  // null: this device has no cuBLAS
  const ipc::CublasLtTable* cublaslt = nullptr;
  std::vector<CUcontext> contexts;  // one per device, made by main.cc; index = device ordinal
  ExtentSource* extents = nullptr;
  PoisonSink* poison = nullptr;
  StreamOwners* owners = nullptr;  // null: no stream has an owner
  Board* board = nullptr;          // null: no gate, everyone runs at once
  DaemonLink* daemon = nullptr;    // null: the keeper alone decides about memory
  LaneTable* lanes = nullptr;
  JobBooks* jobs = nullptr;
  SwapSpace* swap = nullptr;          // null: nothing is ever swapped
  BackedAddresses* backed = nullptr;  // null: what lies in an arena counts as backed
  Reaper* reaper = nullptr;    // null: calls that wait for the whole context are made at once
  bool on_processors = false;  // a software device: it works on the processors that this runs on
};

struct SessionSetup {
  uint64_t session_id = 0;
  uint32_t slot = 0;
  ipc::SessionFile file;
  ipc::Channel channel;  // rings of the file, or ZeroMQ
  // Other than 0: another worker served it until now. The channel is then the file's, made when the
  // client has put its ring in order.
  uint32_t generation = 0;
  int pinned_fd =
      -1;  // the session's pinned memory, a sparse memfd of limits::kPinnedWindowBytes; owned
  int swap_fd = -1;  // its swap file (daemon/common/swap_file.h); owned; -1: it makes its own
  uint64_t job_id = 0;
  uint32_t uid = 0;
  uint64_t memory_limit_bytes = 0;  // of the job, on each device; 0: none
  ipc::SchedulingTerms scheduling;  // of the job
};

struct SessionSnapshot {
  uint64_t ops_received = 0;
  uint64_t device_bytes = 0;  // extents mapped for it
  uint64_t pinned_bytes = 0;
  uint64_t persistent_bytes = 0;  // that lanewayd has granted
  uint64_t lane_bytes = 0;        // reserved
  // On the way from when the session was told of it until it posts Swapped.
  scheduler::Place place;
};

class Session {
 public:
  // Reserves the slot's device addresses. On failure `error` holds a sentence and null is returned.
  static std::unique_ptr<Session> Create(SessionSetup setup, const Environment& environment,
                                         std::string* error);
  virtual ~Session() = default;

  // Executes calls until Stop(), a lost page or a malformed message (then the session is marked
  // lost with 806), then waits for the session's submitted work, bounded, and gives back everything
  // it held.
  virtual void Run() = 0;
  // The client is gone or the worker ends: Run() returns soon.
  virtual void Stop() = 0;
  // Another worker goes on with the session. Run() returns as soon as the device has finished every
  // message that was taken, and leaves the session's resources to the successor.
  virtual void Release() = 0;
  // Run() has returned because of Release().
  virtual bool released() const = 0;
  virtual SessionSnapshot Snapshot() const = 0;
  // Everything that was taken of the session's messages is complete, so the end of the worker loses
  // nothing. Any thread.
  virtual bool quiet() const = 0;
  // Runs `command` on the session's thread at the next moment at which it is quiet: between two
  // messages, nothing of it on the device. Any thread; returns at once. A session that ends before
  // that moment drops it.
  virtual void Post(std::function<void()> command) {}
  // Carries out a decision of lanewayd as soon as the session's state allows. Any thread.
  virtual void OnDecision(const Decision& decision) {}
};

}  // namespace worker
