// Lets independent launches of a chunk run at the same time.
//
// When a chunk has been repeated a few times, a thread of the client looks at the launches that
// follow each other on one stream. The thread finds what they touch in the PTX of their modules
// (replay/run_prover.h), and where the client's memory is. Where that proves launches independent,
// the client tells the worker what must wait for what, and which words of the messages the proof
// has read (ipc::laneway::OrderLaunches). A repeat with other words runs in program order. Scratch
// memory that launches use in turn is renamed where that lets them run at the same time
// (replay/versions.h): up to limits::kRenameBytesMax in all orders that the worker has.
//
// Proofs rest on ProofFacts, too (shim/order_trust.h). When these change, the next repeat takes all
// orders back first. The thread rests four times as long as it has worked.
//
// Thread safety: Start() once a process; RepeatWatch under the send lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "replay/run_prover.h"
#include "shim/launch_messages.h"
#include "shim/lock_order.h"
#include "shim/order_trust.h"
#include "shim/pipeline.h"
#include "shim/repeat_watch.h"

namespace shim {

class RunOrders final : public RepeatWatch {
 public:
  // Lives as long as the process, and so does the pipeline. Null: the prover can't be loaded, or
  // there is no thread; chunks are then repeated in program order. REQUIRES: nothing was sent yet.
  static RunOrders* Start(Pipeline* pipeline);

  bool OnRepeat(const ipc::ChunkRepeat& repeat, std::span<const ipc::ChunkPatch> patches,
                std::span<const std::byte> run) override;
  bool OnForget() override;

 private:
  // A chunk to be looked at.
  struct Wanted {
    uint64_t epoch = 0;
    uint32_t offset = 0;  // in the chunk area
    std::vector<ipc::ChunkPatch> patches;
    std::vector<std::byte> messages;
  };

  RunOrders(Pipeline* pipeline, std::unique_ptr<replay::RunProver> prover)
      : pipeline_(*pipeline), prover_(std::move(prover)) {}

  [[noreturn]] void Work();
  bool Take(Wanted* wanted);
  void Prove(const Wanted& wanted);
  void ProveRun(const Wanted& wanted, const LaunchRun& run);
  void Give(const Wanted& wanted, const LaunchRun& run, const replay::RunProof& proof,
            uint64_t facts);

  OrderTrust::Facts Now() const;
  // Bytes into which the next order may rename.
  uint64_t RenameBytesLeft() const;

  static constexpr size_t kWantedMax = 64;

  Pipeline& pipeline_;
  const std::unique_ptr<replay::RunProver> prover_;  // of the thread
  OrderTrust trust_;                                 // under the send lock
  // Of the orders that the worker has. Grows on the thread alone.
  std::atomic<uint64_t> rename_bytes_{0};
  base::Mutex wanted_mutex_ ACQUIRED_AFTER(lock_order::kKeeping);
  std::deque<Wanted> wanted_ GUARDED_BY(wanted_mutex_);
  std::atomic<uint32_t> asked_{0};  // counts what was put into wanted_
};

}  // namespace shim
