// Says for each iteration of the session whether its calls may be held back and repeated
// (shim/chunk_sender.h), as the user chose with --replay (ipc/replay_mode.h).
//
// A program without iterations is forwarded call by call under `auto`, because nothing tells then
// whether replay is faster. Until the first iteration is found its calls are learned all the same,
// so that the iterations behind it are replayed from the first on. What an earlier start of the
// program has measured of its loop is taken over at the loop's first boundary. Thread safety: under
// the send lock; Open() before it.
#pragma once

#include <cstdint>

#include "ipc/client_words.h"
#include "ipc/replay_mode.h"
#include "shim/benefit_gate.h"
#include "shim/boundary.h"
#include "shim/chunk_sender.h"
#include "shim/kept_verdicts.h"

namespace shim {

class ReplayControl {
 public:
  // REQUIRES: once, before any other method. All outlive this object; `chunks` is null where calls
  // are never held.
  void Open(const ipc::ReplayMode& mode, ChunkSender* chunks, ipc::ClientWords* words,
            MemoryAtBoundary* memory, KeptVerdicts* verdicts);

  // To be asked once for each call. Null: the call goes alone.
  ChunkSender* ForNextCall() {
    if (calls_to_learn_ != 0 && --calls_to_learn_ == 0) chunks_ = nullptr;
    return chunks_;
  }
  // An iteration of this body has ended (ipc::BoundaryInfo::body).
  void OnBoundary(uint32_t body) {
    if (all_chunks_ != nullptr) EndIteration(body);
  }

  // A program that has no iterations by then is not learned any more. The detector of iterations
  // finds a loop of kPeriodMax operations within so many (shim/iterations/period.h).
  static constexpr uint32_t kCallsToLearn = 1u << 16;

 private:
  void EndIteration(uint32_t body);
  void Compare(uint32_t body);
  void Measure();
  void Judge(uint32_t body, BenefitGate::State before);
  void TellMemory();
  void Publish(ipc::ReplayState state);

  ipc::ReplayMode mode_;
  ChunkSender* all_chunks_ = nullptr;
  ChunkSender* chunks_ = nullptr;
  ipc::ClientWords* words_ = nullptr;
  MemoryAtBoundary* memory_ = nullptr;
  KeptVerdicts* verdicts_ = nullptr;
  bool holds_freed_ = false;  // as memory was told
  BenefitGate gate_;
  bool kept_ = false;            // an earlier start came to the verdict that is in force
  uint32_t calls_to_learn_ = 0;  // before the first iteration is found
  uint64_t iterations_ = 0;
  uint32_t newest_body_ = 0;
  int64_t last_ns_ = 0;
  uint64_t last_repeated_ = 0;
};

}  // namespace shim
