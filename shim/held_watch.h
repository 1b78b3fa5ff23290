// Sends what the client holds back when nothing follows: a program may compute for long between two
// calls, or look for its kernel's results in memory without any call.
//
// A thread looks every kNapUs while messages are held, and finds those that were held at its last
// look. Where a program pauses once, it pauses again: the matcher learns a run that ends there, so
// the next time the run goes before the pause. The thread sleeps while nothing is held.
// Thread safety: Start() once a process.
#pragma once

#include <cstdint>

#include "shim/chunk_sender.h"
#include "shim/pipeline.h"

namespace shim {

class HeldWatch {
 public:
  // The watch lives as long as the process, and so do both. False: there is no thread for it.
  static bool Start(ChunkSender* sender, Pipeline* pipeline);

 private:
  static constexpr int64_t kNapUs = 1'000;
  static constexpr int kNapsBeforeSleep = 100;

  HeldWatch(ChunkSender* sender, Pipeline* pipeline) : sender_(*sender), pipeline_(*pipeline) {}
  [[noreturn]] void Run();
  void SleepUntilStirred();

  ChunkSender& sender_;
  Pipeline& pipeline_;
};

}  // namespace shim
