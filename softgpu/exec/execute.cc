// Execute(): a grid's blocks over the threads of the pool.
//
// The caller runs blocks itself; only when the first ones show that there is work for more than a
// wake-up costs do other threads join. Whoever waits spins shortly first: programs launch one
// kernel after another, and a wake-up takes longer than many a grid. Kernels with floating-point
// atomics run in order on the caller. A cooperative grid keeps all its blocks resident on the
// caller and gives each its turn.
#include <algorithm>
#include <chrono>
#include <list>
#include <memory>
#include <thread>

#include "base/mutex.h"
#include "softgpu/exec/block.h"
#include "softgpu/exec/check.h"
#include "softgpu/exec/fault.h"
#include "softgpu/exec/handlers.h"
#include "softgpu/exec/spin.h"
#include "softgpu/exec/tier.h"

namespace softgpu {
namespace exec {
namespace {

constexpr uint64_t kWorthSharingNs = 50'000;
constexpr uint64_t kBlocksAtATime = 32;

std::atomic<Compiler*> the_compiler{nullptr};

uint64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

bool LaunchState::Overdue() const { return deadline_ns != 0 && NowNs() > deadline_ns; }

void LaunchState::Divide(uint64_t first, unsigned threads) {
  shares = std::vector<Share>(threads);
  const uint64_t each = blocks / threads, longer = blocks % threads;
  for (uint64_t n = 0, begin = 0; n < threads; begin = shares[n++].end) {
    shares[n].next.store(std::max(begin, first), std::memory_order_relaxed);
    shares[n].end = begin + each + (n < longer ? 1 : 0);
  }
}

bool LaunchState::BlocksLeft() const {
  return std::any_of(shares.begin(), shares.end(), [](const Share& share) {
    return share.next.load(std::memory_order_relaxed) < share.end;
  });
}

namespace {

Fault Refusal(const Launch& launch, CUresult code, std::string what) {
  Fault fault;
  fault.code = code;
  fault.what = std::move(what);
  fault.kernel = launch.kernel->name();
  return fault;
}

unsigned Processors() {
  static const unsigned count = std::max(std::thread::hardware_concurrency(), 2u);
  return count;
}

BlockMemory& MemoryOfThread() {
  // On the heap: the library's thread-local block must be small, or dlopen finds no room for it.
  static thread_local const std::unique_ptr<BlockMemory> memory = std::make_unique<BlockMemory>();
  return *memory;
}

// Takes blocks of a share until none is left: some at a time, for they are cheap, but fewer and
// fewer, so that all threads end together. False when the grid is to stop.
bool TakeBlocks(LaunchState* state, LaunchState::Share* share, BlockMemory* memory) {
  for (;;) {
    const uint64_t taken = share->next.load(std::memory_order_relaxed);
    if (taken >= share->end) return true;
    const uint64_t count = std::clamp<uint64_t>((share->end - taken) / 8, 1, kBlocksAtATime);
    const uint64_t first = share->next.fetch_add(count, std::memory_order_relaxed);
    const uint64_t last = std::min(first + count, share->end);
    if (first < last && !RunBlocks(state, memory, first, last)) return false;
  }
}

// Thread `own` of the grid's. Blocks that wait for earlier ones come to an end, for thread 0, the
// caller, passes over none.
void TakeShares(LaunchState* state, size_t own, BlockMemory* memory) {
  const size_t count = state->shares.size();
  for (size_t n = 0; n < count; ++n) {
    if (!TakeBlocks(state, &state->shares[(own + n) % count], memory)) return;
  }
}

// Threads that help with big grids. Never destroyed: they sleep until the process ends.
class Pool {
 public:
  static Pool& Get() {
    static Pool* const pool = new Pool();
    return *pool;
  }

  void Offer(LaunchState* state) {
    offerer_.Note();
    base::MutexLock lock(&mutex_);
    StartThreads();
    jobs_.emplace_back(state);
    offers_.fetch_add(1, std::memory_order_relaxed);
    if (sleeping_ != 0) wake_.NotifyAll();
  }

  // Returns when no thread works on `state`, which was offered, any more.
  void Withdraw(LaunchState* state) {
    base::MutexLock lock(&mutex_);
    const std::list<Job>::iterator job = Find(state);
    lock.Unlock();
    const auto alone = [&] { return job->helpers.load(std::memory_order_acquire) == 0; };
    SpinUntil(alone, job->helper);
    lock.Lock();
    while (!alone()) idle_.Wait(&mutex_);
    jobs_.erase(job);
  }

 private:
  struct Job {
    explicit Job(LaunchState* s) : state(s) {}
    LaunchState* const state;
    std::atomic<int> helpers{0};
    Whereabouts helper;  // the last that came
  };

  std::list<Job>::iterator Find(const LaunchState* state) REQUIRES(mutex_) {
    return std::find_if(jobs_.begin(), jobs_.end(),
                        [state](const Job& job) { return job.state == state; });
  }

  void StartThreads() REQUIRES(mutex_) {
    while (threads_ + 1 < Processors())
      std::thread([this, own = ++threads_] { Serve(own); }).detach();
  }

  Job* TakeJob() REQUIRES(mutex_) {
    for (Job& job : jobs_) {
      if (!job.state->BlocksLeft() || job.state->Stopping()) continue;
      job.helpers.fetch_add(1, std::memory_order_relaxed);
      return &job;
    }
    return nullptr;
  }

  void Serve(size_t own) {
    base::MutexLock lock(&mutex_);
    for (;;) {
      Job* const job = TakeJob();
      if (job == nullptr) {
        AwaitOffer();
        continue;
      }
      lock.Unlock();
      job->helper.Note();
      BlockMemory& memory = MemoryOfThread();
      const bool ready = memory.Prepare(job->state);
      if (ready) TakeShares(job->state, own, &memory);
      lock.Lock();
      job->helpers.fetch_sub(1, std::memory_order_release);
      idle_.NotifyAll();
      // Without memory for a block this thread is no help; the caller goes on alone.
      if (!ready) AwaitOffer();
    }
  }

  // Another grid may be there then, or none.
  void AwaitOffer() REQUIRES(mutex_) {
    const uint64_t seen = offers_.load(std::memory_order_relaxed);
    const auto came = [&] { return offers_.load(std::memory_order_relaxed) != seen; };
    mutex_.Unlock();
    SpinUntil(came, offerer_);
    mutex_.Lock();
    if (came()) return;
    ++sleeping_;
    wake_.Wait(&mutex_);
    --sleeping_;
  }

  base::Mutex mutex_;
  base::CondVar wake_, idle_;
  std::list<Job> jobs_ GUARDED_BY(mutex_);
  std::atomic<uint64_t> offers_{0};
  Whereabouts offerer_;
  unsigned threads_ GUARDED_BY(mutex_) = 0;
  unsigned sleeping_ GUARDED_BY(mutex_) = 0;
};

bool RunIndependent(LaunchState* state) {
  BlockMemory& memory = MemoryOfThread();
  if (!memory.Prepare(state)) return false;
  if (state->code->in_order || state->blocks == 1) {
    RunBlocks(state, &memory, 0, state->blocks);
    return true;
  }
  const uint64_t begin = NowNs();
  for (uint64_t first = 0, count = 1; first < state->blocks;) {
    const uint64_t last = first + count;
    if (!RunBlocks(state, &memory, first, last)) return true;
    if ((NowNs() - begin) / last * (state->blocks - last) >= kWorthSharingNs) {
      state->Divide(last, Processors());
      Pool::Get().Offer(state);
      TakeShares(state, 0, &memory);
      Pool::Get().Withdraw(state);
      return true;
    }
    first = last;
    count = std::clamp<uint64_t>((state->blocks - last) / 4, 1, 2 * count);
  }
  return true;
}

bool RunCooperative(LaunchState* state) {
  std::vector<std::unique_ptr<BlockMemory>> resident;
  std::vector<Block*> running;
  for (uint64_t index = 0; index < state->blocks; ++index) {
    resident.push_back(std::make_unique<BlockMemory>());
    if (!resident.back()->Prepare(state)) return false;
    running.push_back(resident.back()->Start(index));
  }
  while (!running.empty() && !state->Stopping()) {
    for (size_t i = 0; i < running.size();) {
      const Progress progress = RunBlock(running[i]);
      if (progress == Progress::kFault) return true;
      if (progress == Progress::kDone) {
        running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
  }
  return true;
}

}  // namespace

void SetCompiler(Compiler* compiler) { the_compiler = compiler; }

}  // namespace exec

std::optional<Fault> Execute(const Launch& launch) {
  const ptx::KernelImpl& kernel = static_cast<const ptx::KernelImpl&>(*launch.kernel);
  const uint64_t threads = launch.block.Count();
  if (threads == 0 || threads > exec::kWarpsMax * exec::kLanes) {
    return exec::Refusal(launch, CUDA_ERROR_INVALID_VALUE, "bad number of threads in a block");
  }
  exec::LaunchState state;
  state.launch = &launch;
  state.checked = launch.report != nullptr;
  const std::shared_ptr<const exec::KernelCode> translated = exec::Translate(kernel, state.checked);
  exec::Compiler* const compiler =
      state.checked ? nullptr : exec::the_compiler.load(std::memory_order_acquire);
  state.code = compiler == nullptr ? translated : compiler->Choose(translated, launch);
  state.images = state.code->Resolve(launch.variables);
  if (launch.watchdog_ms > 0) {
    state.deadline_ns = exec::NowNs() + uint64_t{launch.watchdog_ms} * 1'000'000;
  }
  state.threads = static_cast<uint32_t>(threads);
  state.warps = (state.threads + exec::kLanes - 1) / exec::kLanes;
  state.blocks = launch.grid.Count();
  state.shared_bytes = launch.dynamic_shared_bytes == 0
                           ? kernel.static_shared_bytes()
                           : uint64_t{kernel.dynamic_shared_offset()} + launch.dynamic_shared_bytes;
  if (state.shared_bytes > ptx::kSharedBytesLimit) {
    return exec::Refusal(launch, CUDA_ERROR_INVALID_VALUE, "too much shared memory");
  }
  exec::InstallFaultHandler();
  const bool counts = compiler != nullptr && state.code == translated;
  const uint64_t begin = counts ? exec::NowNs() : 0;
  const bool enough = launch.cooperative && state.blocks > 1 ? exec::RunCooperative(&state)
                                                             : exec::RunIndependent(&state);
  if (counts) compiler->Ran(translated, launch, exec::NowNs() - begin);
  if (state.FaultAtEnd().has_value()) return state.FaultAtEnd();
  if (!enough) return exec::Refusal(launch, CUDA_ERROR_OUT_OF_MEMORY, "no memory for a block");
  if (state.Stopping()) return exec::Refusal(launch, CUDA_ERROR_LAUNCH_FAILED, "cancelled");
  return std::nullopt;
}

void MarkUninitialised(uint64_t address, uint64_t bytes) {
  exec::FillPoison(reinterpret_cast<void*>(address), address, bytes);
}

}  // namespace softgpu
