#include "tests/hostile/raw_client.h"

#include <algorithm>

#include "ipc/control.h"
#include "ipc/futex.h"
#include "ipc/runtime_dir.h"
#include "ipc/socket.h"

namespace hostile {
namespace {

constexpr int64_t kLookUs = 200'000;  // then ask whether the session still lives

std::vector<std::byte> Copied(const void* bytes, size_t count) {
  const std::byte* const from = static_cast<const std::byte*>(bytes);
  return {from, from + count};
}

}  // namespace

Body& Body::Raw(const void* bytes, size_t count) {
  const std::byte* const from = static_cast<const std::byte*>(bytes);
  fixed_.insert(fixed_.end(), from, from + count);
  return *this;
}

Body& Body::Range(const void* bytes, size_t count) {
  ranges_.push_back(Copied(bytes, count));
  return U8(1);
}

Body& Body::Text(std::string_view text) {
  std::vector<std::byte> bytes = Copied(text.data(), text.size());
  bytes.push_back(std::byte{0});
  const uint32_t count = static_cast<uint32_t>(bytes.size());
  ranges_.push_back(std::move(bytes));
  return U32(count);
}

Body& Body::Mark(uint64_t sequence, bool wake) {
  return Put(ipc::Mark{sequence, wake ? 1u : 0u, 0});
}

std::vector<std::byte> Body::Bytes() const {
  std::vector<std::byte> bytes = fixed_;
  for (const std::vector<std::byte>& range : ranges_) {
    bytes.resize((bytes.size() + 7) / 8 * 8);
    bytes.insert(bytes.end(), range.begin(), range.end());
  }
  return bytes;
}

absl::StatusOr<std::unique_ptr<RawClient>> RawClient::Open(ipc::Hello hello) {
  absl::StatusOr<ipc::UniqueFd> socket = ipc::ConnectTo(ipc::HelloSocketPath(ipc::RuntimeDir()));
  if (!socket.ok()) return socket.status();
  hello.tables = ipc::OwnTables();
  ipc::control::SetText(hello.program, "hostile");
  ipc::control::SetText(hello.version, "test");
  const absl::Status sent =
      ipc::SendPacket(socket->get(), {reinterpret_cast<const std::byte*>(&hello), sizeof hello});
  if (!sent.ok()) return sent;
  std::unique_ptr<RawClient> client(new RawClient());
  absl::StatusOr<ipc::Packet> packet;
  do {
    packet = ipc::ReceivePacket(socket->get(), kPatienceUs);
    if (!packet.ok()) return packet.status();
    if (packet->bytes.size() != sizeof client->welcome_) return absl::InternalError("no welcome");
    std::memcpy(&client->welcome_, packet->bytes.data(), sizeof client->welcome_);
  } while (client->welcome_.queued != 0);
  if (client->welcome_.result != 0 || packet->fds.size() != 2)
    return absl::UnavailableError(client->welcome_.sentence);
  absl::StatusOr<ipc::SessionFile> file = ipc::SessionFile::Map(packet->fds[0].get());
  if (!file.ok()) return file.status();
  client->socket_ = std::move(*socket);
  client->session_fd_ = std::move(packet->fds[0]);
  client->pinned_fd_ = std::move(packet->fds[1]);
  client->file_ = std::make_unique<ipc::SessionFile>(std::move(*file));
  client->channel_ = client->file_->ClientChannel();
  return client;
}

bool RawClient::Send(ipc::Op op, std::span<const std::byte> body, uint16_t flags, uint32_t context,
                     int64_t patience_us) {
  ipc::MessageHeader header;
  header.bytes = static_cast<uint32_t>(sizeof header + body.size());
  header.op = static_cast<uint16_t>(op);
  header.flags = flags;
  header.request = ++requests_;
  header.context = context;
  const int64_t end_ns = ipc::MonotonicNs() + patience_us * 1000;
  while (loss() == 0 && ipc::MonotonicNs() < end_ns) {
    const std::span<std::byte> room = sender()->Reserve(header.bytes, kLookUs);
    if (room.empty()) continue;
    std::memcpy(room.data(), &header, sizeof header);
    if (!body.empty()) std::memcpy(room.data() + sizeof header, body.data(), body.size());
    placed_ = room.data();
    sender()->Commit(header.bytes);
    return true;
  }
  return false;
}

Reply RawClient::Await(int64_t timeout_us) {
  Reply reply;
  const int64_t end_ns = ipc::MonotonicNs() + timeout_us * 1000;
  while (loss() == 0 && ipc::MonotonicNs() < end_ns) {
    const std::span<const std::byte> message = channel_.receiver->NextUntrusted(20, kLookUs);
    if (message.size() < sizeof(ipc::MessageHeader) + sizeof reply.status) continue;
    ipc::MessageHeader header;
    std::memcpy(&header, message.data(), sizeof header);
    if (header.request != requests_) continue;  // of one that was not waited for
    const std::span<const std::byte> body = message.subspan(sizeof header);
    reply.came = true;
    reply.bytes.assign(body.begin(), body.end());
    std::memcpy(&reply.status, body.data(), sizeof reply.status);
    break;
  }
  return reply;
}

Reply RawClient::Call(ipc::Op op, const Body& body, int64_t timeout_us) {
  if (!Send(op, body.Bytes(), ipc::kWantsReply)) return {};
  return Await(timeout_us);
}

// A call that fails places no mark.
bool RawClient::AwaitMark(uint64_t sequence) {
  const std::atomic<uint64_t>& word = file_->completions()->completed[0];
  (void)AwaitWord([&] { return word.load() >= sequence || page()->async_error.load() != 0; });
  return word.load() >= sequence && page()->async_error.load() == 0;
}

bool RawClient::AwaitLoss() {
  (void)AwaitWord([] { return false; });
  return loss() != 0;
}

// True when `done` holds; false when the session is lost, or the time is over.
bool RawClient::AwaitWord(const std::function<bool()>& done) {
  std::atomic<uint32_t>* const doorbell = &page()->client_doorbell;
  const int64_t end_ns = ipc::MonotonicNs() + kPatienceUs * 1000;
  for (;;) {
    const uint32_t ticket = doorbell->load();
    if (done()) return true;
    if (loss() != 0 || ipc::MonotonicNs() > end_ns) return false;
    ipc::FutexWait(doorbell, ticket, kLookUs);
  }
}

bool RawClient::Write(uint64_t to, std::span<const std::byte> bytes) {
  std::copy(bytes.begin(), bytes.end(), staging());
  const uint64_t mark = ++marks_;
  const Body body = Body().U64(to).U64(0).U64(bytes.size()).U32(1).Mark(mark);
  return Post(ipc::Op::CopyStagedIn, body) && AwaitMark(mark);
}

bool RawClient::Read(uint64_t from, std::span<std::byte> bytes) {
  const uint64_t mark = ++marks_;
  const Body body = Body().U64(0).U64(from).U64(bytes.size()).U32(1).Mark(mark);
  if (!Post(ipc::Op::CopyStagedOut, body) || !AwaitMark(mark)) return false;
  std::copy(staging(), staging() + bytes.size(), bytes.begin());
  return true;
}

bool RawClient::Boundary() {
  ipc::BoundaryInfo info;
  info.iteration = ++iterations_;
  return Post(ipc::Op::Boundary, Body().Range(&info, sizeof info));
}

}  // namespace hostile
