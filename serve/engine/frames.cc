#include "serve/engine/frames.h"

#include <poll.h>
#include <sys/socket.h>

#include <cassert>
#include <cerrno>
#include <cstring>

namespace serve::engine {
namespace {

constexpr size_t kReadBytes = 64u << 10;

}  // namespace

std::optional<uint32_t> FrameReader::Announced() const {
  uint32_t bytes = 0;
  if (buffer_.size() - taken_ < sizeof bytes) return std::nullopt;
  std::memcpy(&bytes, buffer_.data() + taken_, sizeof bytes);
  return bytes;
}

bool FrameReader::IsBroken() const {
  const std::optional<uint32_t> bytes = Announced();
  return bytes.has_value() && (*bytes == 0 || *bytes > kFrameBytesMax);
}

// The buffer grows by what has come, never by what is announced.
void FrameReader::AddUntrusted(std::span<const std::byte> bytes) {
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

std::optional<Bytes> FrameReader::Take() {
  const std::optional<uint32_t> bytes = Announced();
  if (!bytes.has_value() || IsBroken()) return std::nullopt;
  const size_t begin = taken_ + sizeof *bytes;
  if (buffer_.size() - begin < *bytes) return std::nullopt;
  const Bytes::iterator body = buffer_.begin() + static_cast<ptrdiff_t>(begin);
  Bytes frame(body, body + *bytes);
  taken_ = begin + *bytes;
  if (taken_ == buffer_.size() || taken_ > buffer_.size() / 2) {
    buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<ptrdiff_t>(taken_));
    taken_ = 0;
  }
  return frame;
}

void AppendFrame(std::span<const std::byte> body, Bytes* to) {
  assert(!body.empty() && body.size() <= kFrameBytesMax);
  const uint32_t bytes = static_cast<uint32_t>(body.size());
  const std::byte* const size = reinterpret_cast<const std::byte*>(&bytes);
  to->insert(to->end(), size, size + sizeof bytes);
  to->insert(to->end(), body.begin(), body.end());
}

bool WriteFrame(int socket, std::span<const std::byte> body) {
  Bytes frame;
  AppendFrame(body, &frame);
  for (size_t done = 0; done < frame.size();) {
    const ssize_t sent = send(socket, frame.data() + done, frame.size() - done, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    done += static_cast<size_t>(sent);
  }
  return true;
}

std::optional<Bytes> ReadFrame(int socket, FrameReader* reader) {
  std::vector<std::byte> room(kReadBytes);
  for (;;) {
    if (std::optional<Bytes> frame = reader->Take()) return frame;
    if (reader->IsBroken()) return std::nullopt;
    const ssize_t got = recv(socket, room.data(), room.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    reader->AddUntrusted(std::span(room).first(static_cast<size_t>(got)));
  }
}

bool HasBytes(int socket, const FrameReader& reader) {
  if (!reader.empty()) return true;
  pollfd waits = {socket, POLLIN, 0};
  return poll(&waits, 1, 0) > 0;
}

}  // namespace serve::engine
