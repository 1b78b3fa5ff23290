// A client of lanewayd that says what it likes: the hello, rings and bodies of calls made by hand.
//
// Tests of the daemon's side need what the shim never sends: calls out of order, of wrong lengths,
// with names and addresses that are no object's. Thread safety: none; one thread per object.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/status/statusor.h"
#include "ipc/calls.h"
#include "ipc/calls/laneway_calls.h"
#include "ipc/calls/limits.h"
#include "ipc/hello.h"
#include "ipc/session_file.h"
#include "ipc/unique_fd.h"

namespace hostile {

// The parameters of one call, in their order, as ipc/codec.h lays them out.
class Body {
 public:
  template <class T>
  Body& Put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return Raw(&value, sizeof value);
  }
  Body& U8(uint8_t value) { return Put(value); }
  Body& U32(uint32_t value) { return Put(value); }
  Body& U64(uint64_t value) { return Put(value); }
  Body& Raw(const void* bytes, size_t count);
  // A pointer parameter and what it points at, which goes behind all fixed ones.
  Body& Range(const void* bytes, size_t count);
  Body& Text(std::string_view text);
  // 0: no mark.
  Body& Mark(uint64_t sequence, bool wake = true);

  std::vector<std::byte> Bytes() const;

 private:
  std::vector<std::byte> fixed_;
  std::vector<std::vector<std::byte>> ranges_;
};

struct Reply {
  bool came = false;  // within the time, and before the session was lost
  uint32_t status = 0;
  std::vector<std::byte> bytes;  // with the status
};

class RawClient {
 public:
  static constexpr uint32_t kContext = 1 << 8 | 1;  // the first one, on the first device
  static constexpr int64_t kPatienceUs = 60'000'000;

  // Says `hello`, whose tables and names it fills in, and waits until it is admitted. The error is
  // lanewayd's sentence.
  static absl::StatusOr<std::unique_ptr<RawClient>> Open(ipc::Hello hello = {});

  uint64_t session_id() const { return welcome_.session_id; }
  uint32_t slot() const { return welcome_.slot; }
  uint64_t base() const { return ipc::limits::kSlotBase + slot() * ipc::limits::kSlotBytes; }
  uint64_t lane() const { return base() + ipc::limits::kEphemeralOffset; }
  uint64_t pinned() const { return base() + ipc::limits::kDeviceArenaBytes; }
  ipc::SessionPage* page() const { return file_->page(); }
  std::byte* staging() const { return file_->staging(); }
  std::byte* chunks() const { return file_->chunks(); }
  ipc::Sender* sender() const { return channel_.sender.get(); }
  int session_fd() const { return session_fd_.get(); }
  int pinned_fd() const { return pinned_fd_.get(); }
  // 0 while the session lives.
  uint32_t loss() const { return page()->loss.load(); }
  std::string_view loss_text() const { return page()->loss_text; }
  // Until the session is lost.
  bool AwaitLoss();

  // False when the session was lost, or its worker takes nothing for so long.
  bool Send(ipc::Op op, std::span<const std::byte> body, uint16_t flags,
            uint32_t context = kContext, int64_t patience_us = kPatienceUs);
  // Where the message that was sent last lies in the ring.
  std::byte* placed() const { return placed_; }
  bool Post(ipc::Op op, const Body& body) { return Send(op, body.Bytes(), 0); }
  Reply Call(ipc::Op op, const Body& body, int64_t timeout_us = kPatienceUs);
  // The reply to what Send asked last.
  Reply Await(int64_t timeout_us);

  // Bytes to and from the device, in the order of the legacy stream. False: lost, or an error,
  // which async_error() takes then.
  bool Write(uint64_t to, std::span<const std::byte> bytes);
  bool Read(uint64_t from, std::span<std::byte> bytes);
  uint32_t async_error() { return page()->async_error.exchange(0); }
  // Everything after it belongs to the next iteration.
  bool Boundary();

 private:
  RawClient() = default;
  bool AwaitMark(uint64_t sequence);
  bool AwaitWord(const std::function<bool()>& done);

  ipc::UniqueFd socket_, session_fd_, pinned_fd_;
  std::unique_ptr<ipc::SessionFile> file_;
  ipc::Channel channel_;
  ipc::Welcome welcome_;
  std::byte* placed_ = nullptr;
  uint32_t requests_ = 0;
  uint64_t marks_ = 0;
  uint64_t iterations_ = 0;
};

}  // namespace hostile
