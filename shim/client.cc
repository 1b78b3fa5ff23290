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

#include "ipc/futex.h"
#include "shim/rebuild/record.h"
#include "shim/say.h"

namespace shim {
namespace {

constexpr int64_t kNapUs = 100'000;
constexpr int kRelaxesPerClockRead = 32;
// lanewayd knows better why a worker ended; only when it stays silent do we say so ourselves.
constexpr int kNapsBeforeOwnVerdict = 5;
constexpr int kNapsWhileMoving = 300;  // it said so: a worker is being started

std::atomic<bool> said_lost, said_connect, said_forked;

// How far the device is: it changes nothing there.
bool IsQuestion(ipc::Op op) {
  return op == ipc::Op::StreamMark || op == ipc::Op::EventWake || op == ipc::Op::Boundary ||
         op == ipc::Op::FetchAhead;
}

}  // namespace

Client& Client::Process() {
  static Client* const client = new Client;
  return *client;
}

Client::Client() {
#if LANEWAY_TEST_HOOKS
  if (const char* const n = std::getenv("LANEWAY_TEST_STOP_AT"); n != nullptr) {
    stop_at_ = std::strtoull(n, nullptr, 10);
  }
#endif
}

CUresult Client::Initialize() {
  if (state_.load(std::memory_order_acquire) == State::kLive) return Ready();
  if (state_.load(std::memory_order_acquire) == State::kForked) return NotLive();
  const std::lock_guard<std::mutex> lock(connect_mutex_);
  if (state_.load(std::memory_order_acquire) == State::kLive) return Ready();
  ConnectError error;
  std::unique_ptr<Connection> connection = Connect(&error);
  if (connection == nullptr) {
    SayOnce(said_connect, {error.sentence});
    return error.code;
  }
  Use(std::move(connection));
  return CUDA_SUCCESS;
}

void Client::Use(std::unique_ptr<Connection> connection) {
  assert(connection_ == nullptr);
  connection_ = std::move(connection);
  page_ = connection_->file->page();
  words_ = connection_->file->completions();
  ring_ = dynamic_cast<ipc::RingSender*>(connection_->channel.sender.get());
  generation_.store(page_->generation.load(std::memory_order_acquire));
  arena_base_ = ipc::limits::kSlotBase + connection_->welcome.slot * ipc::limits::kSlotBytes;
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, &Client::AfterForkInChild); });
  state_.store(State::kLive, std::memory_order_release);
}

void Client::AfterForkInChild() {
  Client& client = Process();
  if (client.state_.load(std::memory_order_relaxed) == State::kLive) {
    client.state_.store(State::kForked, std::memory_order_relaxed);
  }
}

CUresult Client::NotLive() const {
  if (state_.load(std::memory_order_acquire) == State::kForked) {
    SayOnce(said_forked,
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
  if (sentence.starts_with("laneway: ")) sentence.remove_prefix(9);  // SayOnce begins so itself
  SayOnce(said_lost, {sentence.empty() ? "the session is lost" : sentence});
  return static_cast<CUresult>(loss);
}

// The one thing a session writes to the program's standard output: it is the program's own, and
// stdio keeps it in order with the rest.
void Client::ShowPrints() {
  ipc::PrintArea* const prints = connection_->file->prints();
  if (prints->empty()) return;
  const std::lock_guard<std::mutex> lock(prints_mutex_);
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

void Client::AfterWait(uint64_t look, int32_t slot) {
  if (!fences_.Tells(look, slot)) return;
  const std::lock_guard<std::mutex> lock(send_mutex_);
  fences_.AfterWait(look, slot);
}

void Client::CheckWorker() {
  if (page_->loss.load(std::memory_order_acquire) != 0) return;
  // The rebuild looks after itself.
  if (Displaced() && !rebuilding_.load(std::memory_order_relaxed)) return;
  bool lives = false;
  {
    const std::lock_guard<std::mutex> lock(worker_mutex_);
    lives = connection_->worker.Alive();
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
  if (Displaced()) (void)Rebuild();  // a failure is the session's loss, which the caller looks at
}

bool Client::SpinCompleted(uint32_t slot, uint64_t sequence, unsigned spin_us) const {
  if (Completed(slot, sequence)) return true;
  const int64_t begin = ipc::MonotonicNs();
  int64_t now = begin;
  do {
    for (int i = 0; i < kRelaxesPerClockRead; ++i) {
      if (Completed(slot, sequence)) return true;
      ipc::CpuRelax();
    }
    // The worker may have been woken on this processor.
    if (now - begin >= ipc::limits::kSpinUs * 1000) sched_yield();
    now = ipc::MonotonicNs();
  } while (now - begin < spin_us * 1000);
  return false;
}

CUresult Client::SleepUntilCompleted(uint32_t slot, uint64_t sequence) {
  for (;;) {
    const uint32_t ticket = DoorbellTicket();
    if (Completed(slot, sequence)) return CUDA_SUCCESS;
    if (page_->loss.load(std::memory_order_acquire) != 0) return Lost();
    SleepOnDoorbell(ticket);
  }
}

// --- replies -------------------------------------------------------------------------------------

void Client::Register(PendingReply* pending) {
  const std::lock_guard<std::mutex> lock(pending_mutex_);
  pending_.push_back(pending);
}

void Client::Forget(PendingReply* pending) {
  const std::lock_guard<std::mutex> lock(pending_mutex_);
  std::erase(pending_, pending);
}

CUresult Client::WaitReply(PendingReply* pending, uint32_t replay_of) {
  while (pending->done.load(std::memory_order_acquire) == 0) {
    if (page_->loss.load(std::memory_order_acquire) != 0) return Lost();
    if (replay_of != 0) {
      if (page_->generation.load(std::memory_order_acquire) != replay_of)
        return CUDA_ERROR_NOT_READY;
    } else if (Displaced() && !rebuilding_.load(std::memory_order_acquire)) {
      // Whoever holds the send lock now looks for this, too, before it waits for room.
      if (send_mutex_.try_lock()) {
        const std::lock_guard<std::mutex> lock(send_mutex_, std::adopt_lock);
        (void)RebuildLocked();
      } else {
        std::this_thread::yield();
      }
      continue;
    }
    if (!reading_.exchange(true, std::memory_order_acquire)) {
      ReadForAll(pending, replay_of);
      reading_.store(false, std::memory_order_seq_cst);
      WakeFollowers();
    } else {
      FollowReader(pending);
    }
  }
  return CUDA_SUCCESS;
}

void Client::ReadForAll(PendingReply* mine, uint32_t replay_of) {
  ipc::Receiver& receiver = *connection_->channel.receiver;
  while (mine->done.load(std::memory_order_acquire) == 0) {
    const std::span<const std::byte> message = receiver.NextUntrusted(ipc::limits::kSpinUs, kNapUs);
    if (!message.empty()) {
      if (Deliver(message, mine)) WakeFollowers();
      continue;
    }
    if (receiver.broken()) {
      ipc::MarkLost(page_, CUDA_ERROR_MPS_RPC_FAILURE,
                    "the worker wrote a message that makes no sense");
    }
    if (page_->loss.load(std::memory_order_acquire) != 0) return;
    if (replay_of != 0 ? page_->generation.load(std::memory_order_acquire) != replay_of
                       : Displaced() && !rebuilding_.load(std::memory_order_acquire)) {
      return;
    }
    CheckWorker();
  }
}

// True when the reply was someone else's than the reader's.
bool Client::Deliver(std::span<const std::byte> message, const PendingReply* mine) {
  if (message.size() < sizeof(ipc::MessageHeader)) return false;
  ipc::MessageHeader header;
  std::memcpy(&header, message.data(), sizeof header);
  if ((header.flags & ipc::kIsReply) == 0) return false;
  const std::lock_guard<std::mutex> lock(pending_mutex_);
  for (PendingReply* const pending : pending_) {
    if (pending->request != header.request) continue;
    pending->bytes.assign(message.begin(), message.end());
    pending->done.store(1, std::memory_order_release);
    return pending != mine;
  }
  return false;  // its caller gave up
}

void Client::FollowReader(PendingReply* mine) {
  const int64_t end = ipc::MonotonicNs() + ipc::limits::kSpinUs * 1000;
  const auto news = [&] {
    return mine->done.load(std::memory_order_acquire) != 0 ||
           !reading_.load(std::memory_order_seq_cst);
  };
  do {
    for (int i = 0; i < kRelaxesPerClockRead; ++i) {
      if (news()) return;
      ipc::CpuRelax();
    }
  } while (ipc::MonotonicNs() < end);
  const uint32_t ticket = followers_word_.load(std::memory_order_seq_cst);
  followers_sleeping_.fetch_add(1, std::memory_order_seq_cst);
  if (!news()) ipc::FutexWait(&followers_word_, ticket, kNapUs);
  followers_sleeping_.fetch_sub(1, std::memory_order_seq_cst);
}

void Client::WakeFollowers() {
  if (followers_sleeping_.load(std::memory_order_seq_cst) == 0) return;
  followers_word_.fetch_add(1, std::memory_order_seq_cst);
  ipc::FutexWakeAll(&followers_word_);
}

// --- one message ---------------------------------------------------------------------------------

Message::Message(Client& client, ipc::Op op, size_t body_bytes, uint32_t context,
                 ipc::Values values)
    : client_(client), lock_(client.send_mutex_), op_(op), context_(context) {
  if (values != nullptr) SendBoundaryBefore(values);
  if (result_ == CUDA_SUCCESS && Reserve(body_bytes)) return;
  result_ = client_.Lost();
  lock_.unlock();
}

// False: the session is lost.
bool Message::Reserve(size_t body_bytes) {
  assert(body_bytes <= ipc::kBodyBytesMax);
  for (;;) {
    if (client_.Displaced() && client_.RebuildLocked() != CUDA_SUCCESS) return false;
    room_ = client_.connection_->channel.sender->Reserve(sizeof(ipc::MessageHeader) + body_bytes,
                                                         kNapUs);
    if (!room_.empty()) break;
    client_.CheckWorker();
    if (client_.page_->loss.load(std::memory_order_acquire) != 0) return false;
  }
  body_ = room_.subspan(sizeof(ipc::MessageHeader));
  client_.touched_ = arena::kAnyStream;
  return true;
}

void Message::Commit(size_t body_bytes, uint16_t flags, uint32_t request) {
  ipc::MessageHeader header;
  header.bytes = static_cast<uint32_t>(sizeof header + body_bytes);
  header.op = static_cast<uint16_t>(op_);
  header.flags = flags;
  header.request = request;
  header.thread = ThisThread().number;
  header.context = context_;
  std::memcpy(room_.data(), &header, sizeof header);
  client_.connection_->channel.sender->Commit(header.bytes);
  if (values_ != nullptr && client_.ring_ != nullptr) {
    token_ =
        shim::Record({op_, values_, encoded_, room_.first(header.bytes), client_.ring_->position(),
                      client_.page_->to_worker.tail.load(std::memory_order_relaxed),
                      (flags & ipc::kWantsReply) != 0, client_.arena_base_},
                     &client_.log_);
    if (client_.log_.overflowed())
      client_.page_->obstacles.fetch_or(ipc::kLogTooLong, std::memory_order_relaxed);
    if (const uint32_t incomplete = client_.log_.incomplete(); incomplete != 0)
      client_.page_->obstacles.fetch_or(incomplete, std::memory_order_relaxed);
  }
  const uint64_t submitted = client_.submitted_.load(std::memory_order_relaxed) + 1;
  if (!IsQuestion(op_)) {
    client_.last_work_.store(submitted, std::memory_order_relaxed);
    const int32_t slot = client_.touched_ == Client::kLegacyTouched
                             ? static_cast<int32_t>(context_ & 0xff) - 1
                             : client_.touched_;
    if (slot != arena::kAnyStream) client_.fences_.OnWork(slot, submitted);
  }
  client_.submitted_.store(submitted, std::memory_order_relaxed);
#if LANEWAY_TEST_HOOKS
  if (submitted == client_.stop_at_) raise(SIGSTOP);
#endif
}

CUresult Message::Send(size_t body_bytes) {
  Commit(body_bytes, 0, 0);
  lock_.unlock();
  return CUDA_SUCCESS;
}

CUresult Message::Exchange(size_t body_bytes, std::vector<std::byte>* reply) {
  Client::PendingReply pending;
  if (++client_.last_request_ == 0) ++client_.last_request_;
  pending.request = client_.last_request_;
  client_.Register(&pending);
  Commit(body_bytes, ipc::kWantsReply, pending.request);
  lock_.unlock();
  const CUresult result = client_.WaitReply(&pending);
  client_.Forget(&pending);
  if (result != CUDA_SUCCESS) return result;
  *reply = std::move(pending.bytes);
  reply->erase(reply->begin(), reply->begin() + sizeof(ipc::MessageHeader));
  return CUDA_SUCCESS;
}

}  // namespace shim
