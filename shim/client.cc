#include "shim/client.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "ipc/environment.h"
#include "ipc/futex.h"
#include "shim/body_content.h"
#include "shim/call_trace.h"
#include "shim/device_memory.h"
#include "shim/handle_resolver.h"
#include "shim/held_watch.h"
#include "shim/iterations/iterations.h"
#include "shim/recording/recorder.h"
#include "shim/run_orders.h"
#include "shim/stderr_once.h"

namespace shim {
namespace {

// lanewayd knows better why a worker ended; only when it stays silent do we say so ourselves.
constexpr int kNapsBeforeOwnVerdict = 5;
constexpr int kNapsWhileMoving = 300;  // it said so: a worker is being started

ipc::ReplayMode WantedReplay() {
  const char* const wanted = std::getenv(ipc::kReplayVariable);
  return ipc::ParseReplayMode(wanted == nullptr ? "off" : wanted).value_or(ipc::ReplayMode());
}

// Puts a sender before the connection's that sends runs as chunks. The chunk area is part of the
// session's file. So a worker that takes the session over reads the chunks that the ring still
// names.
ChunkSender* OpenChunks(Connection* connection, ipc::RingSender* ring) {
  const std::span<std::byte> area(connection->file->chunks(), ipc::limits::kChunkAreaBytes);
  std::unique_ptr<ChunkSender> sender =
      std::make_unique<ChunkSender>(std::move(connection->channel.sender), ring, area);
  ChunkSender* const chunks = sender.get();
  connection->channel.sender = std::move(sender);
  return chunks;
}

std::atomic<bool> said_lost, said_connect, said_forked;

}  // namespace

Client& Client::Process() {
  static Client* const client = new Client;
  return *client;
}

Client::Client() = default;

CUresult Client::Initialize() {
  if (state_.load(std::memory_order_acquire) == State::kLive) return Ready();
  if (state_.load(std::memory_order_acquire) == State::kForked) return NotLive();
  const base::MutexLock lock(&connect_mutex_);
  if (state_.load(std::memory_order_acquire) == State::kLive) return Ready();
  ConnectError error;
  std::unique_ptr<Connection> connection = Connect(&error);
  if (connection == nullptr) {
    StderrOnce(said_connect, {error.sentence});
    return error.code;
  }
  Use(std::move(connection));
  return CUDA_SUCCESS;
}

void Client::Use(std::unique_ptr<Connection> connection) {
  assert(connection_ == nullptr);
  connection_ = std::move(connection);
  {
    const base::MutexLock lock(&worker_mutex_);
    worker_ = connection_->worker;
  }
  page_ = connection_->file->page();
  BeginTracing(*connection_->file);
  words_ = connection_->file->completions();
  ring_ = dynamic_cast<ipc::RingSender*>(connection_->channel.sender.get());
  arena_base_ = ipc::limits::kSlotBase + connection_->welcome.slot * ipc::limits::kSlotBytes;
  replies_.Open(connection_->channel.receiver.get(), page_, this);
  const ipc::ReplayMode replay = WantedReplay();
  ChunkSender* const chunks = ring_ != nullptr && replay.kind != ipc::ReplayMode::Kind::kOff
                                  ? OpenChunks(connection_.get(), ring_)
                                  : nullptr;
  pipeline_.Open({.sender = connection_->channel.sender.get(),
                  .ring = ring_,
                  .chunks = chunks,
                  .replay = replay,
                  .verdicts = connection_->file->verdicts(),
                  .namer = &BodyContent::Process(),
                  .page = page_,
                  .arena_base = arena_base_,
                  .caller = &HandleResolver::Process(),
                  .iterations = &iterations::Iterations::Process(),
                  .memory = &DeviceMemory::Process(),
                  .log = &log_,
                  .replies = &replies_,
                  .upkeep = this,
                  .recorder = recording::Recorder::Process()});
  // Without a thread that looks after them, no messages may be held back.
  if (chunks != nullptr && !HeldWatch::Start(chunks, &pipeline_)) chunks->HoldNothing();
  if (chunks != nullptr) chunks->SetWatch(RunOrders::Start(&pipeline_));
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, &Client::AfterForkInChild); });
  state_.store(State::kLive, std::memory_order_release);
}

void Client::AfterForkInChild() {
  Client& client = Process();
  if (client.state_.load(std::memory_order_relaxed) == State::kLive) {
    client.state_.store(State::kForked, std::memory_order_relaxed);
    EndTracing();
  }
}

CUresult Client::NotLive() const {
  if (state_.load(std::memory_order_acquire) == State::kForked) {
    StderrOnce(said_forked,
               {"this process was forked from one that uses CUDA; a child must exec, or the parent "
                "must fork before its first CUDA call"});
  }
  return CUDA_ERROR_NOT_INITIALIZED;
}

CUresult Client::Lost() {
  const uint32_t loss = page_->loss.load(std::memory_order_acquire);
  char text[ipc::kLossTextBytes];
  std::memcpy(text, page_->loss_text, sizeof text);
  text[sizeof text - 1] = '\0';
  std::string_view sentence(text);
  if (sentence.starts_with("laneway: ")) sentence.remove_prefix(9);  // StderrOnce begins so itself
  StderrOnce(said_lost, {sentence.empty() ? "the session is lost" : sentence});
  return static_cast<CUresult>(loss);
}

// The one thing a session writes to the program's standard output: it is the program's own, and
// stdio keeps it in order with the rest.
void Client::ShowPrints() {
  ipc::PrintArea* const prints = connection_->file->prints();
  if (prints->empty()) return;
  const base::MutexLock lock(&prints_mutex_);
  const std::string text = prints->Drain();
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

CUresult Client::AfterWait() {
  ShowPrints();
  if (page_->loss.load(std::memory_order_acquire) != 0) return Lost();
  if (page_->async_error.load(std::memory_order_relaxed) == 0) return CUDA_SUCCESS;
  return static_cast<CUresult>(page_->async_error.exchange(0));
}

void Client::CheckWorker() {
  if (page_->loss.load(std::memory_order_acquire) != 0) return;
  // The rebuild looks after itself.
  if (NeedsRebuild()) return;
  bool lives = false;
  {
    const base::MutexLock lock(&worker_mutex_);
    lives = worker_.Alive();
  }
  if (lives) {
    missed_naps_.store(0, std::memory_order_relaxed);
    return;
  }
  const bool moving = page_->moving.load(std::memory_order_relaxed) != 0;
  const int patience = moving ? kNapsWhileMoving : kNapsBeforeOwnVerdict;
  if (missed_naps_.fetch_add(1, std::memory_order_relaxed) < patience) return;
  ipc::MarkLost(page_, CUDA_ERROR_MPS_RPC_FAILURE,
                "the worker process ended; this program's device state is gone, start it again");
}

uint32_t Client::DoorbellTicket() const {
  return page_->client_doorbell.load(std::memory_order_seq_cst);
}

void Client::SleepOnDoorbell(uint32_t ticket) {
  const int64_t start = ipc::MonotonicNs();
  ipc::FutexWait(&page_->client_doorbell, ticket, kNapUs);
  if (ipc::MonotonicNs() - start >= kNapUs * 1000) CheckWorker();
  if (pipeline_.Displaced())
    (void)Rebuild();  // a failure is the session's loss, which the caller looks at
}

CUresult Client::SleepUntilCompleted(uint32_t slot, uint64_t sequence) {
  for (;;) {
    const uint32_t ticket = DoorbellTicket();
    if (Completed(slot, sequence)) return CUDA_SUCCESS;
    if (page_->loss.load(std::memory_order_acquire) != 0) return Lost();
    SleepOnDoorbell(ticket);
  }
}

}  // namespace shim
