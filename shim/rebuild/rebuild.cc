#include "shim/rebuild/rebuild.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"
#include "ipc/futex.h"
#include "ipc/module_hash.h"
#include "shim/client.h"
#include "shim/handle_resolver.h"
#include "shim/image.h"
#include "shim/rebuild/images.h"
#include "shim/state.h"

namespace shim {

// --- the client's part ---------------------------------------------------------------------------

CUresult Client::Rebuild() {
  const base::MutexLock lock(&pipeline_.lock());
  const CUresult result = RebuildLocked();
  if (result != CUDA_SUCCESS) return result;
  return page_->loss.load(std::memory_order_acquire) == 0 ? CUDA_SUCCESS : Lost();
}

void Client::TryRebuild() {
  if (!pipeline_.lock().TryLock()) {
    std::this_thread::yield();
    return;
  }
  const base::MutexLock lock(&pipeline_.lock(), std::adopt_lock);
  (void)RebuildLocked();  // a failure is the session's loss, which the thread looks at next
}

// Each turn of the loop tells one worker. Another turn follows when yet another worker has taken
// the session over meanwhile; the unread messages stay copied out until a worker knows all objects.
CUresult Client::RebuildLocked() {
  pipeline_.lock().AssertHeld();
  if (!pipeline_.Displaced()) return CUDA_SUCCESS;
  if (page_->loss.load(std::memory_order_acquire) != 0) return Lost();
  std::vector<std::byte> unread;
  if (ring_ == nullptr || !ring_->CopyUnread(&unread)) {
    ipc::MarkLost(page_, CUDA_ERROR_MPS_RPC_FAILURE,
                  "another worker took this program's session over, which its transport does not "
                  "allow; start it again");
    return Lost();
  }
  rebuilding_.store(true, std::memory_order_release);
  page_->replaying.store(1, std::memory_order_seq_cst);
  const uint64_t position = page_->to_worker.tail.load(std::memory_order_seq_cst);
  CUresult result = CUDA_ERROR_NOT_READY;
  const Replay::Ends ends{ring_, page_, &log_, &pipeline_, &replies_};
  uint32_t generation = 0;
  std::string error;
  while (result == CUDA_ERROR_NOT_READY) {
    generation = page_->generation.load(std::memory_order_acquire);
    {
      const base::MutexLock lock(&worker_mutex_);
      worker_ = Liveness(static_cast<pid_t>(page_->worker_pid));
    }
    missed_naps_.store(0, std::memory_order_relaxed);
    ring_->Rewind();
    page_->acknowledged.store(generation, std::memory_order_seq_cst);
    page_->worker_doorbell.fetch_add(1, std::memory_order_seq_cst);
    ipc::FutexWakeAll(&page_->worker_doorbell);
    Replay replay(ends, generation);
    result = replay.Run(position);
    error = replay.error();
  }
  if (result == CUDA_SUCCESS) {
    log_.Shift(position, ring_->position() - position);
    pipeline_.SetGeneration(generation);
    page_->replaying.store(0, std::memory_order_seq_cst);
    result = Replay(ends, generation).Resend(unread);
  } else if (!error.empty()) {
    ipc::MarkLost(page_, CUDA_ERROR_MPS_RPC_FAILURE, error.c_str());
  }
  rebuilding_.store(false, std::memory_order_release);
  return result == CUDA_SUCCESS ? result : Lost();
}

// --- the replay ----------------------------------------------------------------------------------

CUresult Replay::Fail(std::string sentence) {
  error_ = absl::StrCat("the worker was replaced, and ", sentence, "; start this program again");
  return CUDA_ERROR_MPS_RPC_FAILURE;
}

// As the pipeline's MakeRoom, but a displaced worker ends it: the rebuild begins again.
CUresult Replay::Send(std::span<const std::byte> message) {
  for (;;) {
    const std::span<std::byte> room = ends_.ring->Reserve(message.size(), kNapUs);
    if (!room.empty()) {
      std::memcpy(room.data(), message.data(), message.size());
      ends_.ring->Commit(message.size());
      return CUDA_SUCCESS;
    }
    if (ends_.page->loss.load(std::memory_order_acquire) != 0) return CUDA_ERROR_MPS_RPC_FAILURE;
    if (ends_.page->generation.load(std::memory_order_acquire) != generation_)
      return CUDA_ERROR_NOT_READY;
  }
}

// The copy of the message gets a number of its own: the reply to the first sending may still lie in
// the ring, and must not be taken for this one.
CUresult Replay::Exchange(std::span<const std::byte> message, std::vector<std::byte>* reply) {
  std::vector<std::byte> bytes(message.begin(), message.end());
  ipc::MessageHeader header = ipc::HeaderAt(bytes);
  PendingReply pending;
  ends_.pipeline->lock().AssertHeld();  // by the rebuild, around the whole replay
  pending.request = ends_.pipeline->NextRequest();
  header.flags = ipc::kWantsReply;
  header.request = pending.request;
  std::memcpy(bytes.data(), &header, sizeof header);
  ends_.replies->Register(&pending);
  CUresult result = Send(bytes);
  if (result == CUDA_SUCCESS) result = ends_.replies->WaitInRebuild(&pending, generation_);
  ends_.replies->Forget(&pending);
  if (result != CUDA_SUCCESS) return result;
  reply->assign(pending.bytes.begin() + sizeof(ipc::MessageHeader), pending.bytes.end());
  return CUDA_SUCCESS;
}

CUresult Replay::Call(ipc::Op op, uint32_t context, ipc::Values values, uint32_t* status) {
  ipc::Caller& caller = HandleResolver::Process();
  std::vector<std::byte> message(sizeof(ipc::MessageHeader) + ipc::RequestBytesMax(op, values));
  ipc::Writer writer(std::span<std::byte>(message).subspan(sizeof(ipc::MessageHeader)));
  const ipc::Encoded encoded = ipc::EncodeRequest(op, values, caller, &writer);
  assert(encoded.refusal == ipc::Refusal::kNone && encoded.new_names == 0);
  ipc::MessageHeader header;
  header.bytes = static_cast<uint32_t>(sizeof header + writer.size());
  header.op = static_cast<uint16_t>(op);
  header.context = context;
  std::memcpy(message.data(), &header, sizeof header);
  message.resize(header.bytes);
  std::vector<std::byte> reply;
  const CUresult result = Exchange(message, &reply);
  if (result != CUDA_SUCCESS) return result;
  return ipc::TakeReply(op, values, encoded, reply, caller, status)
             ? CUDA_SUCCESS
             : Fail("its successor answers what makes no sense");
}

// The new worker may have the bytes already, of another session.
CUresult Replay::Upload(const RebuildLog::Entry& entry, uint32_t context) {
  if (entry.image == nullptr) return Fail("the bytes of a module are gone");
  const std::span<const std::byte> image = *entry.image;
  const ipc::ModuleHash hash = ipc::HashOfModule(image);
  int known = 0;
  uint32_t status = 0;
  const ipc::Arguments<ipc::Op::HasModule> question(&hash, &known);
  CUresult result = Call(ipc::Op::HasModule, context, question.values(), &status);
  for (size_t at = 0; at < image.size() && result == CUDA_SUCCESS && status == 0 && known == 0;
       at += kImagePieceBytes) {
    const size_t bytes = std::min(kImagePieceBytes, image.size() - at);
    const ipc::Arguments<ipc::Op::ModuleBytes> piece(&hash, uint64_t{at}, uint64_t{image.size()},
                                                     static_cast<const void*>(image.data() + at),
                                                     bytes);
    result = Call(ipc::Op::ModuleBytes, context, piece.values(), &status);
  }
  if (result == CUDA_SUCCESS && status != 0) return Fail("its successor refuses a module");
  return result;
}

// A program, or its memory, may hold the address that it was told.
bool Replay::IsWhereItWas(std::span<const std::byte> reply) const {
  CUdeviceptr address = 0;
  size_t bytes = 0;
  uint32_t status = 0;
  CUmodule module = nullptr;
  const char* name = "";
  const ipc::Arguments<ipc::Op::GetGlobal> arguments(&address, &bytes, module, name);
  if (!ipc::TakeReply(ipc::Op::GetGlobal, arguments.values(), {}, reply, HandleResolver::Process(),
                      &status)) {
    return false;
  }
  Allocation known;
  return status == 0 && State::Process().variables.Find(address, &known) && known.base == address &&
         known.bytes == bytes;
}

CUresult Replay::Repeat(const RebuildLog::Entry& entry) {
  if (entry.op == ipc::Op::LoadModule) {
    const CUresult result = Upload(entry, ipc::HeaderAt(entry.message).context);
    if (result != CUDA_SUCCESS) return result;
  }
  std::vector<std::byte> reply;
  const CUresult result = Exchange(entry.message, &reply);
  if (result != CUDA_SUCCESS) return result;
  uint32_t status = 0;
  if (reply.size() < sizeof status) return Fail("its successor answers what makes no sense");
  std::memcpy(&status, reply.data(), sizeof status);
  // Its answer may still lie in the ring: a call that the program sees fail.
  if (status != 0 && !entry.confirmed) return CUDA_SUCCESS;
  if (status != 0) {
    return Fail(absl::StrCat("its successor fails to repeat ",
                             std::string(ipc::RowOf(entry.op).name), " (error ", status, ")"));
  }
  if (entry.op == ipc::Op::GetGlobal && !IsWhereItWas(reply))
    return Fail("a device variable has another address in its successor");
  return CUDA_SUCCESS;
}

CUresult Replay::Run(uint64_t position) {
  for (const RebuildLog::Entry& entry : ends_.log->At(position)) {
    if (const CUresult result = Repeat(entry); result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult Replay::Resend(std::span<const std::byte> unread) {
  while (unread.size() >= sizeof(ipc::MessageHeader)) {
    const size_t bytes = ipc::HeaderAt(unread).bytes;
    const size_t place = ipc::PaddedBytes(bytes);
    if (bytes < sizeof(ipc::MessageHeader) || bytes > ipc::limits::kMessageBytesMax ||
        place > unread.size()) {
      assert(false);  // we wrote them
      break;
    }
    if (const CUresult result = Send(unread.first(bytes)); result != CUDA_SUCCESS) return result;
    unread = unread.subspan(place);
  }
  return CUDA_SUCCESS;
}

}  // namespace shim
