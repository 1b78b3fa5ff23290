#include "daemon/worker/extents.h"

#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/common/child_main.h"
#include "ipc/futex.h"
#include "ipc/runtime_dir.h"
#include "ipc/socket.h"

namespace worker {
namespace {

namespace wire = ipc::control;

constexpr int64_t kReplyTimeoutUs = 30'000'000;  // creating a large extent clears it
constexpr int64_t kNewKeeperTimeoutUs = 10'000'000;
constexpr std::chrono::milliseconds kRetryStep(50);

void* AsOsHandle(int fd) { return reinterpret_cast<void*>(static_cast<intptr_t>(fd)); }

// Whether keeping one more descriptor open is fine: half of the limit stays free for everything
// else.
bool DescriptorsAbound(size_t held) {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 && held < limit.rlim_cur / 2;
}

}  // namespace

KeeperExtents::KeeperExtents(const common::Driver& driver, std::string runtime_dir, uint32_t worker)
    : driver_(driver), runtime_dir_(std::move(runtime_dir)), worker_(worker) {}

absl::StatusOr<KeeperExtents::Reply> KeeperExtents::AskOnce(const wire::WorkerToKeeper& request,
                                                            std::span<const int> fds) {
  const absl::Status sent = wire::Send<wire::WorkerToKeeper>(socket_.get(), request, fds);
  if (!sent.ok()) return sent;
  return wire::Receive<wire::KeeperToWorker>(socket_.get(), kReplyTimeoutUs);
}

// An error of the connection, or Internal: the keeper goes on without this extent.
absl::Status KeeperExtents::HandOver(const Held& held) {
  ipc::UniqueFd exported;
  if (!held.fd.valid()) {
    int fd = -1;
    const CUresult result = driver_.cuMemExportToShareableHandle(
        &fd, held.handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (result != CUDA_SUCCESS) return absl::InternalError(common::ErrorName(driver_, result));
    exported = ipc::UniqueFd(fd);
  }
  const int fds[] = {held.fd.valid() ? held.fd.get() : exported.get()};
  const absl::StatusOr<Reply> reply = AskOnce(wire::AdoptExtent{held.record}, fds);
  if (!reply.ok()) return reply.status();
  const wire::ExtentReply* answer = std::get_if<wire::ExtentReply>(&reply->message);
  if (answer != nullptr && answer->result == CUDA_SUCCESS) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the keeper does not take extent ", held.record.id));
}

// A hand-over may end in the middle. Then the part of a lane that the keeper has begins at the
// lane's start and has no gaps.
std::vector<KeeperExtents::Held*> KeeperExtents::ToHandOver() {
  const std::set<uint64_t> lanes = claims_.OnNewKeeper();
  std::vector<Held*> list;
  for (std::pair<const uint64_t, Held>& entry : held_) {
    entry.second.told = false;
    if (SpeaksFor(entry.second.record.owner, lanes)) list.push_back(&entry.second);
  }
  std::sort(list.begin(), list.end(), [](const Held* a, const Held* b) {
    return std::tie(a->record.owner, a->record.address) <
           std::tie(b->record.owner, b->record.address);
  });
  return list;
}

absl::Status KeeperExtents::ConnectAndHandOver() {
  absl::StatusOr<ipc::UniqueFd> socket = ipc::ConnectTo(ipc::KeeperSocketPath(runtime_dir_));
  if (!socket.ok()) return socket.status();
  socket_ = std::move(*socket);
  absl::Status status = wire::Send<wire::ToKeeper>(socket_.get(), wire::Register{worker_});
  for (Held* const held : ToHandOver()) {
    if (!status.ok()) break;
    status = HandOver(*held);
    held->told = status.ok();
    // Its books are wrong by this extent then; the mapping itself is not touched.
    if (absl::IsInternal(status)) {
      common::Log("worker", std::string(status.message()));
      status = absl::OkStatus();
    }
  }
  if (!status.ok()) socket_.Reset();
  return status;
}

absl::StatusOr<KeeperExtents::Reply> KeeperExtents::Ask(const wire::WorkerToKeeper& request) {
  const int64_t deadline = ipc::MonotonicNs() + kNewKeeperTimeoutUs * 1000;
  for (;;) {
    absl::Status status = socket_.valid() ? absl::OkStatus() : ConnectAndHandOver();
    if (status.ok()) {
      absl::StatusOr<Reply> reply = AskOnce(request, {});
      if (reply.ok()) return reply;
      status = reply.status();
      socket_.Reset();
    }
    if (ipc::MonotonicNs() >= deadline) return status;
    (void)keeper_changed_.WaitUntil(&mutex_, std::chrono::steady_clock::now() + kRetryStep);
  }
}

void KeeperExtents::OnKeeperChanged() {
  const base::MutexLock lock(&mutex_);
  pollfd entry{socket_.get(), 0, 0};
  if (socket_.valid() && (poll(&entry, 1, 0) == 0)) return;  // it is the one that we talk to
  const absl::Status status = ConnectAndHandOver();
  if (!status.ok())
    common::Log("worker", absl::StrCat("no new keeper yet: ", std::string(status.message())));
  keeper_changed_.NotifyAll();
}

CUresult KeeperExtents::Take(absl::StatusOr<Reply>* reply, ExtentRecord record, Extent* extent) {
  if (!reply->ok()) {
    common::Log("worker", absl::StrCat("no keeper: ", std::string(reply->status().message())));
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const wire::ExtentReply* answer = std::get_if<wire::ExtentReply>(&(*reply)->message);
  if (answer == nullptr) return CUDA_ERROR_MPS_RPC_FAILURE;
  if (answer->result != CUDA_SUCCESS) return static_cast<CUresult>(answer->result);
  if ((*reply)->fds.empty()) return CUDA_ERROR_MPS_RPC_FAILURE;
  ipc::UniqueFd fd = std::move((*reply)->fds[0]);
  const CUresult result = driver_.cuMemImportFromShareableHandle(
      &extent->handle, AsOsHandle(fd.get()), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  if (result != CUDA_SUCCESS) return result;
  record.id = extent->id = answer->id;
  extent->bytes = record.bytes;
  extent->clear = answer->clear != 0;
  Held held{record, extent->handle, {}};
  if (DescriptorsAbound(held_.size())) held.fd = std::move(fd);
  held_.insert_or_assign(extent->id, std::move(held));
  return CUDA_SUCCESS;
}

// An extent that cannot be imported here is given up at once: otherwise it would lie in the
// keeper's books, as its owner's, and in no worker's mappings.
CUresult KeeperExtents::Create(const ExtentRecord& wanted, Extent* extent) {
  const base::MutexLock lock(&mutex_);
  absl::StatusOr<Reply> reply = Ask(wire::CreateExtent{wanted});
  const CUresult result = Take(&reply, wanted, extent);
  if (result != CUDA_SUCCESS && reply.ok() && socket_.valid()) {
    const wire::ExtentReply* made = std::get_if<wire::ExtentReply>(&reply->message);
    if (made != nullptr && made->result == CUDA_SUCCESS) {
      (void)wire::Send<wire::WorkerToKeeper>(socket_.get(), wire::FreeExtent{made->id});
    }
  }
  return result;
}

CUresult KeeperExtents::Import(const ExtentRecord& record, Extent* extent) {
  const base::MutexLock lock(&mutex_);
  absl::StatusOr<Reply> reply = Ask(wire::ImportExtent{record.id});
  return Take(&reply, record, extent);
}

void KeeperExtents::Leave(const Extent& extent, const wire::WorkerToKeeper& word) {
  const base::MutexLock lock(&mutex_);
  driver_.cuMemRelease(extent.handle);
  const std::map<uint64_t, Held>::const_iterator held = held_.find(extent.id);
  const bool told = held != held_.end() && held->second.told;
  if (held != held_.end()) held_.erase(held);
  // A keeper that is gone needs no word: its successor is told only what is held.
  if (told && socket_.valid()) (void)wire::Send<wire::WorkerToKeeper>(socket_.get(), word);
}

void KeeperExtents::Free(const Extent& extent) { Leave(extent, wire::FreeExtent{extent.id}); }

void KeeperExtents::Drop(const Extent& extent) { Leave(extent, wire::DropExtent{extent.id}); }

void KeeperExtents::ChangeOwner(const Extent& extent, const Owner& owner, uint64_t address,
                                uint64_t range) {
  const base::MutexLock lock(&mutex_);
  ExtentRecord& record = held_.at(extent.id).record;
  record.owner = owner;
  record.address = address;
  record.range = range;
  if (!socket_.valid()) return;
  (void)wire::Send<wire::WorkerToKeeper>(socket_.get(),
                                         wire::ChangeOwner{extent.id, owner, address, range});
}

void KeeperExtents::Claim(uint64_t lane) {
  const base::MutexLock lock(&mutex_);
  // A keeper that is gone needs no word: the session asks its successor, and claims anew.
  if (socket_.valid()) (void)wire::Send<wire::WorkerToKeeper>(socket_.get(), wire::ClaimLane{lane});
}

// The answer brings a descriptor of memory that this worker has mapped already: it is closed.
CUresult KeeperExtents::Confirm(const Extent& extent) {
  const base::MutexLock lock(&mutex_);
  if (held_.at(extent.id).told) return CUDA_SUCCESS;
  const absl::StatusOr<Reply> reply = Ask(wire::ImportExtent{extent.id});
  if (!reply.ok()) return CUDA_ERROR_MPS_RPC_FAILURE;
  const wire::ExtentReply* answer = std::get_if<wire::ExtentReply>(&reply->message);
  if (answer == nullptr) return CUDA_ERROR_MPS_RPC_FAILURE;
  held_.at(extent.id).told = answer->result == CUDA_SUCCESS;
  return static_cast<CUresult>(answer->result);
}

CUresult KeeperExtents::List(const Owner& owner, std::vector<ExtentRecord>* extents) {
  const base::MutexLock lock(&mutex_);
  extents->clear();
  absl::StatusOr<Reply> reply = Ask(wire::ListExtents{owner});
  while (reply.ok()) {
    if (std::holds_alternative<wire::ListEnd>(reply->message)) return CUDA_SUCCESS;
    const wire::ExtentList* part = std::get_if<wire::ExtentList>(&reply->message);
    if (part == nullptr) break;
    extents->insert(extents->end(), part->extents, part->extents + part->count);
    reply = wire::Receive<wire::KeeperToWorker>(socket_.get(), kReplyTimeoutUs);
  }
  socket_.Reset();  // what it says next would be taken for another answer
  return CUDA_ERROR_MPS_RPC_FAILURE;
}

CUresult KeeperExtents::MemoryInfo(int device, uint64_t* free_bytes, uint64_t* total_bytes) {
  const base::MutexLock lock(&mutex_);
  const absl::StatusOr<Reply> reply = Ask(wire::GetMemory{static_cast<uint32_t>(device)});
  if (!reply.ok()) return CUDA_ERROR_MPS_RPC_FAILURE;
  const wire::MemoryReply* answer = std::get_if<wire::MemoryReply>(&reply->message);
  if (answer == nullptr) return CUDA_ERROR_MPS_RPC_FAILURE;
  *free_bytes = answer->free_bytes;
  *total_bytes = answer->total_bytes;
  return CUDA_SUCCESS;
}

}  // namespace worker
