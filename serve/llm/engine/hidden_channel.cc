#include "serve/llm/engine/hidden_channel.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace serve::llm {
namespace {

enum class Kind : uint32_t { kOffer = 1, kWidth, kPassed, kReleased };

// A packet in either direction.
struct Note {
  Kind kind = Kind::kOffer;
  uint32_t padding = 0;
  uint64_t first = 0;   // rows_max, columns, or a plan
  uint64_t second = 0;  // width of a row, or whether multiples agree
};

constexpr int32_t kColumnsMax = 1 << 20;

absl::Status Gone() { return absl::CancelledError("a neighbouring stage has ended"); }
absl::Status Nonsense() {
  return absl::InternalError("a neighbouring stage talks nonsense; restart laneway-serve");
}
absl::Status SystemFailure(const char* what) {
  return absl::ResourceExhaustedError(
      absl::StrCat(what, " for hidden states failed: ", std::strerror(errno)));
}

// With `file`, unless it is negative.
absl::Status SendNote(int socket, Note note, int file = -1) {
  iovec part = {&note, sizeof note};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (file >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &file, sizeof file);
  }
  ssize_t sent = 0;
  do {
    sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == sizeof note ? absl::OkStatus() : Gone();
}

// `file` gets what came along.
absl::StatusOr<Note> ReceiveNoteUntrusted(int socket, Kind kind, Descriptor* file = nullptr) {
  Note note;
  iovec part = {&note, sizeof note};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got = 0;
  do {
    got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) return Gone();
  if (const cmsghdr* const header = CMSG_FIRSTHDR(&message);
      header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    int number = -1;
    std::memcpy(&number, CMSG_DATA(header), sizeof number);
    Descriptor came(number);
    if (file != nullptr) *file = std::move(came);
  }
  if (got != sizeof note || note.kind != kind) return Nonsense();
  return note;
}

// A file that can neither grow nor shrink: no access to it faults.
absl::StatusOr<Descriptor> MakeMemory(size_t bytes) {
  Descriptor file(memfd_create("laneway-hidden-states", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) return SystemFailure("memory");
  if (ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) return SystemFailure("memory");
  if (fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return SystemFailure("sealing memory");
  return file;
}

bool IsMemoryOf(int file, size_t bytes) {
  struct stat status = {};
  const int seals = fcntl(file, F_GET_SEALS);
  return fstat(file, &status) == 0 && static_cast<size_t>(status.st_size) == bytes && seals >= 0 &&
         (seals & F_SEAL_SHRINK) != 0;
}

}  // namespace

absl::StatusOr<SharedFloats> SharedFloats::Map(int file, size_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) return SystemFailure("mapping memory");
  SharedFloats shared;
  shared.floats_ = {static_cast<float*>(at), bytes / sizeof(float)};
  return shared;
}

SharedFloats::SharedFloats(SharedFloats&& other) noexcept
    : floats_(std::exchange(other.floats_, {})) {}

SharedFloats& SharedFloats::operator=(SharedFloats&& other) noexcept {
  std::swap(floats_, other.floats_);
  return *this;
}

SharedFloats::~SharedFloats() {
  if (!floats_.empty()) munmap(floats_.data(), floats_.size_bytes());
}

// --- the stage that computes first ---------------------------------------------------------------

HiddenSender::HiddenSender(Descriptor socket, const HiddenShape& shape, SharedFloats memory)
    : socket_(std::move(socket)), shape_(shape), memory_(std::move(memory)) {}

absl::StatusOr<HiddenSender> HiddenSender::Open(Descriptor socket, const HiddenShape& shape) {
  const absl::StatusOr<Descriptor> file = MakeMemory(shape.Bytes());
  if (!file.ok()) return file.status();
  absl::StatusOr<SharedFloats> memory = SharedFloats::Map(file->get(), shape.Bytes());
  if (!memory.ok()) return memory.status();
  const absl::Status status =
      SendNote(socket.get(), {Kind::kOffer, 0, shape.rows_max, shape.width}, file->get());
  if (!status.ok()) return status;
  return HiddenSender(std::move(socket), shape, *std::move(memory));
}

absl::StatusOr<engine::GemmWidth> HiddenSender::ReceiveWidth() {
  const absl::StatusOr<Note> note = ReceiveNoteUntrusted(socket_.get(), Kind::kWidth);
  if (!note.ok()) return note.status();
  if (note->first == 0 || note->first > kColumnsMax || note->second > 1) return Nonsense();
  return engine::GemmWidth{static_cast<int32_t>(note->first), note->second == 1};
}

absl::StatusOr<float*> HiddenSender::WaitForSlot(uint64_t plan) {
  while (passed_ - released_ >= kHiddenSlots) {
    const absl::StatusOr<Note> note = ReceiveNoteUntrusted(socket_.get(), Kind::kReleased);
    if (!note.ok()) return note.status();
    ++released_;
  }
  return memory_.floats().data() + plan % kHiddenSlots * shape_.SlotElements();
}

absl::Status HiddenSender::Pass(uint64_t plan) {
  ++passed_;
  return SendNote(socket_.get(), {Kind::kPassed, 0, plan, 0});
}

// --- the stage that goes on ----------------------------------------------------------------------

HiddenReceiver::HiddenReceiver(Descriptor socket, const HiddenShape& shape, SharedFloats memory)
    : socket_(std::move(socket)), shape_(shape), memory_(std::move(memory)) {}

absl::StatusOr<HiddenReceiver> HiddenReceiver::Open(Descriptor socket, const HiddenShape& shape) {
  Descriptor file;
  const absl::StatusOr<Note> note = ReceiveNoteUntrusted(socket.get(), Kind::kOffer, &file);
  if (!note.ok()) return note.status();
  if (note->first != shape.rows_max || note->second != shape.width || !file.valid() ||
      !IsMemoryOf(file.get(), shape.Bytes()))
    return Nonsense();
  absl::StatusOr<SharedFloats> memory = SharedFloats::Map(file.get(), shape.Bytes());
  if (!memory.ok()) return memory.status();
  return HiddenReceiver(std::move(socket), shape, *std::move(memory));
}

absl::Status HiddenReceiver::SendWidth(const engine::GemmWidth& width) {
  return SendNote(socket_.get(), {Kind::kWidth, 0, static_cast<uint64_t>(width.columns),
                                  width.multiples ? uint64_t{1} : uint64_t{0}});
}

absl::StatusOr<const float*> HiddenReceiver::WaitForRows(uint64_t plan) {
  const absl::StatusOr<Note> note = ReceiveNoteUntrusted(socket_.get(), Kind::kPassed);
  if (!note.ok()) return note.status();
  if (note->first != plan) return Nonsense();
  return memory_.floats().data() + plan % kHiddenSlots * shape_.SlotElements();
}

absl::Status HiddenReceiver::Release(uint64_t plan) {
  return SendNote(socket_.get(), {Kind::kReleased, 0, plan, 0});
}

}  // namespace serve::llm
