#include "daemon/worker/stream_drain.h"

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "daemon/common/threads.h"
#include "daemon/worker/gate.h"
#include "daemon/worker/poll_device.h"
#include "daemon/worker/session_life.h"

namespace worker {
namespace {

// A wait that is answered by hand is seen by a software stream within 2 ms.
constexpr int64_t kAnswerStepUs = 5'000;
// A session that gets to its end before this time needs no help: its own thread releases the
// streams there.
constexpr int64_t kStuckUs = 100'000;

}  // namespace

StreamDrain::~StreamDrain() {
  if (releaser_.joinable()) releaser_.join();
}

void StreamDrain::Stop() {
  CutHeldStreams();
  if (!releaser_.joinable())
    releaser_ = common::StartThread("for a session's end", [this] { ReleaseUntilDone(); });
}

void StreamDrain::Finish() {
  const base::MutexLock lock(&mutex_);
  is_finished_ = true;
  finished_.NotifyAll();
}

bool StreamDrain::AwaitFinish(int64_t us) {
  const std::chrono::steady_clock::time_point until =
      std::chrono::steady_clock::now() + std::chrono::microseconds(us);
  const base::MutexLock lock(&mutex_);
  while (!is_finished_ && finished_.WaitUntil(&mutex_, until)) {
  }
  return is_finished_;
}

void StreamDrain::ReleaseUntilDone() {
  for (int64_t step_us = kStuckUs; !AwaitFinish(step_us); step_us = kAnswerStepUs) {
    ReleaseHeldStreams();
    waits_.AnswerFirst();
  }
}

void StreamDrain::ReleaseHeldStreams() {
  for (std::atomic<uint64_t>& word : file_.completions()->acknowledged)
    word.store(ipc::kEveryTicket);
}

void StreamDrain::HoldAgain() {
  for (std::atomic<uint64_t>& word : file_.completions()->acknowledged) word.store(0);
}

// Another process may still map the session file and take the acknowledgements back. A software
// stream reads them through this process's mapping, so that becomes a private copy. A GPU reads the
// pages that were registered, so there the worker writes them again and again.
void StreamDrain::CutHeldStreams() {
  ReleaseHeldStreams();
  if (!environment_.on_processors) return;
  constexpr size_t kBytes = sizeof(ipc::CompletionWords);
  void* const own =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (own == MAP_FAILED) return;
  std::memcpy(own, file_.completions(), kBytes);
  for (std::atomic<uint64_t>& word : static_cast<ipc::CompletionWords*>(own)->acknowledged)
    word.store(ipc::kEveryTicket);
  // In one step: a stream's thread may be reading.
  if (mremap(own, kBytes, kBytes, MREMAP_MAYMOVE | MREMAP_FIXED, file_.completions()) == MAP_FAILED)
    munmap(own, kBytes);
}

void StreamDrain::WaitForStreams(StreamTable* streams) {
  int64_t answered_us = 0;
  for (StreamTable::Stream* stream : streams->All()) {
    CUresult result = CUDA_SUCCESS;
    PollDevice([&] {
      result = environment_.driver->cuStreamQuery(stream->driver);
      if (result != CUDA_ERROR_NOT_READY) return true;
      ReleaseHeldStreams();
      if (NowUs() - answered_us >= kAnswerStepUs) {
        waits_.AnswerFirst();
        answered_us = NowUs();
      }
      return false;
    });
    if (!IsSticky(result)) continue;
    environment_.poison->OnPoisoned(0, result, "");
    for (;;) pause();
  }
  waits_.Clear();
}

}  // namespace worker
