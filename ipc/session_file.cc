#include "ipc/session_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ipc/chunks/chunk_receiver.h"
#include "ipc/futex.h"

namespace ipc {
namespace {

absl::Status NoRoom(const char* what) {
  return absl::ResourceExhaustedError(
      absl::StrCat("no room for a session's rings: ", what, ": ", std::strerror(errno),
                   "; free shared memory (df /dev/shm) or raise the memory limit"));
}

// Maps `bytes` of fd twice in a row.
std::byte* MapTwice(int fd, size_t offset, size_t bytes) {
  void* room =
      mmap(nullptr, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return nullptr;
  std::byte* const base = static_cast<std::byte*>(room);
  for (int i = 0; i < 2; ++i) {
    if (mmap(base + i * bytes, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
             static_cast<off_t>(offset)) == MAP_FAILED) {
      munmap(room, 2 * bytes);
      return nullptr;
    }
  }
  return base;
}

}  // namespace

absl::StatusOr<int> SessionFile::Create(uint64_t session_id, uint32_t slot) {
  const int fd = memfd_create("laneway-session", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return NoRoom("memfd_create");
  // The pages are allocated now: a full tmpfs must be an error here, not a SIGBUS in a program
  // later. Those of the trace area are allocated when a trace begins.
  if (const int error = posix_fallocate(fd, 0, kSessionMemoryBytes); error != 0) {
    close(fd);
    errno = error;
    return NoRoom("posix_fallocate");
  }
  if (ftruncate(fd, kSessionFileBytes) != 0) {
    close(fd);
    return NoRoom("ftruncate");
  }
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    close(fd);
    return NoRoom("sealing");
  }
  SessionPage page{};
  page.magic = kSessionMagic;
  page.protocol_version = kProtocolVersion;
  page.session_id = session_id;
  page.slot = slot;
  if (getrandom(page.call_token.data(), page.call_token.size(), 0) !=
      static_cast<ssize_t>(page.call_token.size())) {
    close(fd);
    return NoRoom("getrandom");
  }
  page.call_token[0] |= std::byte{1};  // libzmq keeps names that begin with 0 for itself
  if (pwrite(fd, &page, sizeof page, 0) != static_cast<ssize_t>(sizeof page)) {
    close(fd);
    return NoRoom("writing the first page");
  }
  return fd;
}

absl::StatusOr<SessionFile> SessionFile::Map(int fd) {
  struct stat info;
  if (fstat(fd, &info) != 0 || info.st_size != static_cast<off_t>(kSessionFileBytes)) {
    return absl::InvalidArgumentError(
        "the session file has another size: client and daemon differ in version");
  }
  SessionFile file;
  void* const base = mmap(nullptr, kSessionFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) return NoRoom("mmap");
  file.base_ = static_cast<std::byte*>(base);
  file.to_worker_ = MapTwice(fd, kToWorkerOffset, limits::kRingBytes);
  file.to_client_ = MapTwice(fd, kToClientOffset, limits::kRingBytes);
  if (file.to_worker_ == nullptr || file.to_client_ == nullptr) return NoRoom("mmap");
  if (file.page()->magic != kSessionMagic || file.page()->protocol_version != kProtocolVersion) {
    return absl::InvalidArgumentError("not a session file of this version");
  }
  return file;
}

SessionFile::SessionFile(SessionFile&& other) noexcept { *this = std::move(other); }

SessionFile& SessionFile::operator=(SessionFile&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(to_worker_, other.to_worker_);
  std::swap(to_client_, other.to_client_);
  return *this;
}

SessionFile::~SessionFile() {
  if (base_ != nullptr) munmap(base_, kSessionFileBytes);
  if (to_worker_ != nullptr) munmap(to_worker_, 2 * limits::kRingBytes);
  if (to_client_ != nullptr) munmap(to_client_, 2 * limits::kRingBytes);
}

Channel SessionFile::ClientChannel() const {
  return {std::make_unique<RingSender>(&page()->to_worker, to_worker_, &page()->worker_doorbell),
          std::make_unique<RingReceiver>(&page()->to_client, to_client_, &page()->client_doorbell)};
}

Channel SessionFile::WorkerChannel() const {
  return {
      std::make_unique<RingSender>(&page()->to_client, to_client_, &page()->client_doorbell),
      std::make_unique<ChunkReceiver>(
          std::make_unique<RingReceiver>(&page()->to_worker, to_worker_, &page()->worker_doorbell),
          std::span<const std::byte>(chunks(), limits::kChunkAreaBytes))};
}

void MarkLost(SessionPage* page, uint32_t code, const char* text) {
  uint32_t expected = 0;
  if (page->loss_text_ready.compare_exchange_strong(expected, 1)) {
    std::strncpy(page->loss_text, text, kLossTextBytes - 1);
    page->loss_text[kLossTextBytes - 1] = '\0';
    page->loss.store(code, std::memory_order_seq_cst);
  }
  // A client may have written the word by itself, and told itself nothing: all look again anyway.
  for (std::atomic<uint32_t>* word :
       {&page->client_doorbell, &page->worker_doorbell, &page->to_worker.producer_doorbell,
        &page->to_client.producer_doorbell}) {
    word->fetch_add(1, std::memory_order_seq_cst);
    FutexWakeAll(word);
  }
}

}  // namespace ipc
