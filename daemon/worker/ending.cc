// The end of a session: the worker waits for the session's work, then gives up all that the session
// held.
//
// An end does not wait for other sessions. Streams, events, device memory with its addresses and
// the lane go at once, by calls that CUDA documents as not waiting. Modules, library handles and
// registrations of host memory go to the reaper, since the driver may wait for the whole context
// there. So a session that is still here after its program has work of its own on the device.
#include <sys/mman.h>

#include <cstring>
#include <utility>

#include "absl/time/clock.h"
#include "daemon/common/threads.h"
#include "daemon/worker/reaper.h"
#include "daemon/worker/session_impl.h"

namespace worker {
namespace {

constexpr absl::Duration kUntilExit = absl::Milliseconds(1);
constexpr absl::Duration kDrainStep = absl::Microseconds(200);
constexpr absl::Duration kAnswerStep = absl::Milliseconds(5);  // a software stream looks each 2 ms
// The session's thread may be inside the driver, waiting for room in a stream. A session that gets
// to its end before this time needs no help: its own thread releases the streams there.
constexpr absl::Duration kStuck = absl::Milliseconds(100);

}  // namespace

SessionImpl::~SessionImpl() {
  if (releaser_.joinable()) releaser_.join();
}

void SessionImpl::Stop() {
  life_.Stop();
  parking_.poked()->store(1);
  CutHeldStreams();
  if (!releaser_.joinable())
    releaser_ = common::StartThread("for a session's end", [this] { ReleaseUntilDone(); });
  parking_.Ring();
}

void SessionImpl::ReleaseUntilDone() {
  absl::Duration step = kStuck;
  while (!done_.WaitForNotificationWithTimeout(step)) {
    ReleaseHeldStreams();
    waits_.AnswerFirst();
    step = kAnswerStep;
  }
}

void SessionImpl::ReleaseHeldStreams() {
  for (std::atomic<uint64_t>& word : file_.completions()->acknowledged)
    word.store(ipc::kEveryTicket);
}

// Another process may still map the session file and take the acknowledgements back. A software
// stream reads them through this process's mapping, so that becomes a private copy. A GPU reads the
// pages that were registered, so there the worker writes them again and again.
void SessionImpl::CutHeldStreams() {
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

// No interface cancels a running kernel, so memory goes when the last kernel ends. On a poisoned
// device nothing may go at all: callbacks still come until the process exits.
void SessionImpl::WaitForStreams() {
  absl::Time answered = absl::InfinitePast();
  for (StreamTable::Stream* stream : held_.streams.All()) {
    CUresult result = driver_.cuStreamQuery(stream->driver);
    for (; result == CUDA_ERROR_NOT_READY; result = driver_.cuStreamQuery(stream->driver)) {
      ReleaseHeldStreams();
      if (absl::Now() - answered >= kAnswerStep) {
        waits_.AnswerFirst();
        answered = absl::Now();
      }
      absl::SleepFor(kDrainStep);
    }
    if (!IsSticky(result)) continue;
    environment_.poison->OnPoisoned(0, result, "");
    for (;;) absl::SleepFor(kUntilExit);
  }
  waits_.Clear();
}

CUresult SessionImpl::ContextReset(CUdevice) {
  WaitForStreams();
  callbacks_.Wait();
  (void)held_.frees.Poll();  // ranges that the program freed are told to lanewayd as such
  for (std::atomic<uint64_t>& word : file_.completions()->acknowledged) word.store(0);
  iteration_ends_.Clear();
  handlers_.DestroyObjects();
  handlers_.streams().times()->Clear(true);
  ExitLane();  // the arena leaves it; the session enters anew before its next work
  held_.arena.Clear();
  return CUDA_SUCCESS;
}

void SessionImpl::End() {
  handlers_.UseDevice(1);
  CutHeldStreams();
  WaitForStreams();
  callbacks_.Wait();
  done_.Notify();
  iteration_ends_.Clear();
  handlers_.DestroyObjects();
  held_.arena.Clear();
  gate_.reset();  // nothing of it is in its lane: the next goes on
  held_.pinned.Clear();
  LetFileGo();
}

void SessionImpl::LetFileGo() {
  if (!std::exchange(registered_, false)) return;
  Later(environment_,
        [&driver = driver_, file = shared_file_] { driver.cuMemHostUnregister(file->base()); });
}

}  // namespace worker
