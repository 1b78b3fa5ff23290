// Says for each iteration of the session whether its calls may be held back and repeated
// (shim/chunk_sender.h), as the user chose with --replay (ipc/replay_mode.h).
//
// A program without iterations is forwarded call by call under `auto`, because nothing tells then
// whether replay is faster. Thread safety: under the send lock; Open() before it.
#pragma once

#include <cstdint>

#include "ipc/client_words.h"
#include "ipc/replay_mode.h"
#include "shim/benefit_gate.h"
#include "shim/chunk_sender.h"

namespace shim {

class ReplayControl {
 public:
  // REQUIRES: once, before any other method. Both outlive this object; `chunks` is null where calls
  // are never held.
  void Open(const ipc::ReplayMode& mode, ChunkSender* chunks, ipc::ClientWords* words);

  // Null: calls of the iteration that runs are not held.
  ChunkSender* chunks() const { return chunks_; }
  // An iteration has ended.
  void OnBoundary() {
    if (all_chunks_ != nullptr) EndIteration();
  }

 private:
  void EndIteration();
  void Compare();
  void Publish(ipc::ReplayState state);

  ipc::ReplayMode mode_;
  ChunkSender* all_chunks_ = nullptr;
  ChunkSender* chunks_ = nullptr;
  ipc::ClientWords* words_ = nullptr;
  BenefitGate gate_;
  uint64_t iterations_ = 0;
  int64_t last_ns_ = 0;
  uint64_t last_repeated_ = 0;
};

}  // namespace shim
