#include "daemon/worker/crash_handler.h"

#include <signal.h>

#include "daemon/common/crash_note.h"

namespace worker {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

struct Place {
  std::string note_path;
  const StreamOwners* owners = nullptr;
  CUstream (*running_stream)() = nullptr;
};
const Place* place = nullptr;  // never destroyed: threads may crash while the process exits

// Initial-exec: reading it in a signal handler must not allocate.
[[gnu::tls_model("initial-exec")]] thread_local uint64_t thread_session = 0;

uint64_t SessionOfThread() {
  const CUstream stream = place->running_stream == nullptr ? nullptr : place->running_stream();
  const uint64_t owner = stream == nullptr ? 0 : place->owners->SessionInSignal(stream);
  return owner != 0 ? owner : thread_session;
}

// Several threads may crash at once. Each writes its session, and a thread without a session writes
// nothing.
void Handle(int number, siginfo_t* info, void*) {
  common::CrashNote note;
  note.session_id = SessionOfThread();
  note.signal = number;
  if (info->si_code > 0) note.address = reinterpret_cast<uint64_t>(info->si_addr);
  if (note.session_id != 0) common::LeaveCrashNote(place->note_path.c_str(), note);
  signal(number, SIG_DFL);
  raise(number);
}

}  // namespace

void HandleCrashes(const std::string& note_path, const StreamOwners* owners,
                   CUstream (*running_stream)()) {
  (void)common::TakeCrashNote(note_path);  // of an earlier worker with this number
  place = new Place{note_path, owners, running_stream};
  struct sigaction action = {};
  action.sa_sigaction = Handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (const int number : kSignals) sigaction(number, &action, nullptr);
}

void SetThreadSession(uint64_t session_id) { thread_session = session_id; }

}  // namespace worker
