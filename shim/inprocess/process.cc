#include "shim/inprocess/process.h"

#include <cstdlib>
#include <utility>

#include "base/mutex.h"
#include "ipc/futex.h"
#include "ipc/overloaded.h"
#include "shim/inprocess/next_driver.h"
#include "shim/service_thread.h"
#include "shim/stderr_once.h"

namespace shim::inprocess {
namespace {

constexpr int64_t kSilenceUs = 20'000;  // without an operation: then the program is idle
constexpr int64_t kIdleUs = 1'000'000;

}  // namespace

std::atomic<Process*> Process::active_{nullptr};

Process::Process()
    : link_({[this] { return account_.OnHello(); },
             [this](uint64_t id, ipc::SessionPage* page) {
               gate_.SetDaemon(id, page);
               account_.OnUp();
             },
             [this] {
               gate_.Open();
               account_.OnDown();
             },
             [this](const ipc::control::DaemonToProgram& message) { OnDaemonMessage(message); }}),
      account_({[this] { return link_.session_id(); },
                [this](const ipc::control::ProgramToDaemon& message) { link_.Tell(message); }},
               &iterations::Iterations::Process()),
      gate_({[this](const ipc::control::ProgramToDaemon& message) { link_.Tell(message); },
             [this] { Drain(); }, [this] { Wake(); }},
            &iterations::Iterations::Process()) {}

CUresult Process::Begin() {
  static Process* const process = new Process;  // never destroyed: threads use it to the end
  static const CUresult result = [] {
    ConnectError error;
    static std::atomic<bool> said;
    if (!process->link_.Start(&error)) {
      StderrOnce(said, {error.sentence});
      return error.code;
    }
    active_.store(process, std::memory_order_release);
    (void)StartServiceThread(  // without it the program keeps its turns for longer
        [](void* self) -> void* {
          static_cast<Process*>(self)->Watch();
          return nullptr;
        },
        process);
    pthread_atfork(nullptr, nullptr, [] { active_.store(nullptr, std::memory_order_release); });
    std::atexit(&Process::End);
    return CUDA_SUCCESS;
  }();
  return result;
}

// What handlers and destructors still ask of the driver passes; our threads leave it alone.
void Process::End() {
  Process* const process = active_.exchange(nullptr);
  if (process == nullptr) return;
  process->gate_.Open();
  const base::MutexLock lock(&process->contexts_mutex_);
  process->contexts_.clear();
}

void Process::OnDaemonMessage(const ipc::control::DaemonToProgram& message) {
  namespace wire = ipc::control;
  std::visit(ipc::Overloaded{
                 [this](const wire::Grant& grant) { gate_.Grant(grant.lane); },
                 [this](const wire::Revoke&) { gate_.Revoke(); },
                 [this](const wire::MemoryAnswer& answer) { account_.OnAnswer(answer); },
                 [this](const wire::MemoryReply& reply) { account_.OnReply(reply); },
             },
             message);
}

// --- contexts ------------------------------------------------------------------------------------

void Process::NoteContext() {
  thread_local CUcontext last = nullptr;
  thread_local uint64_t seen = 0;
  CUcontext context = nullptr;
  if (Next().cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr) return;
  const uint64_t forgotten = forgotten_.load(std::memory_order_relaxed);
  if (context == last && seen == forgotten) return;
  last = context;
  seen = forgotten;
  const base::MutexLock lock(&contexts_mutex_);
  contexts_.insert(context);
}

void Process::ForgetContexts() {
  const base::MutexLock lock(&contexts_mutex_);
  contexts_.clear();
  forgotten_.fetch_add(1, std::memory_order_relaxed);
}

// With the lock: the process waits in End() until the driver is left alone. What fails here fails
// in the program's own next call, too.
void Process::Drain() {
  const base::MutexLock lock(&contexts_mutex_);
  const ipc::DriverTable& next = Next();
  for (const CUcontext context : contexts_) {
    if (capturing() || next.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS) continue;
    (void)next.cuCtxSynchronize();
    CUcontext popped = nullptr;
    (void)next.cuCtxPopCurrent_v2(&popped);
  }
}

void Process::EndCapture() {
  int captures = captures_.load(std::memory_order_relaxed);
  while (captures > 0 && !captures_.compare_exchange_weak(captures, captures - 1)) {
  }
}

// --- now and then --------------------------------------------------------------------------------

void Process::Wake() {
  awake_.store(1, std::memory_order_seq_cst);
  ipc::FutexWakeAll(&awake_);
}

void Process::Watch() {
  std::atomic<uint32_t> never{0};
  while (Get() != nullptr) {
    awake_.store(0, std::memory_order_seq_cst);
    if (gate_.idle() && !account_.has_surplus()) {
      ipc::FutexWait(&awake_, 0, kIdleUs);
      continue;
    }
    ipc::FutexWait(&never, 0, kSilenceUs);
    if (account_.has_surplus()) account_.Trim();
    if (!capturing()) gate_.ReportIdleIfSilent();
  }
}

}  // namespace shim::inprocess
