// Frames between a front and its engine, on a stream socket: u32 bytes of the body, then the body.
// Numbers are as the machine has them, since both ends are on it.
//
// Thread safety: values; functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace serve::engine {

using Bytes = std::vector<std::byte>;

// The longest plan is of some hundred requests with tables and edits of all their tokens.
constexpr size_t kFrameBytesMax = size_t{256} << 20;

// Collects what a socket gives until a frame is whole.
class FrameReader {
 public:
  void AddUntrusted(std::span<const std::byte> bytes);
  // The next whole frame's body; nothing: there is none yet.
  std::optional<Bytes> Take();
  // The peer announces an empty frame, or one of more than kFrameBytesMax: no more can be taken.
  bool IsBroken() const;
  bool empty() const { return taken_ == buffer_.size(); }

 private:
  std::optional<uint32_t> Announced() const;

  Bytes buffer_;
  size_t taken_ = 0;  // bytes at the beginning of the buffer that were taken already
};

// REQUIRES: 0 < body.size() <= kFrameBytesMax.
void AppendFrame(std::span<const std::byte> body, Bytes* to);

// Blocking, for an engine. False: the peer has gone, or sends no frames.
bool WriteFrame(int socket, std::span<const std::byte> body);
std::optional<Bytes> ReadFrame(int socket, FrameReader* reader);
// A frame begins to be there, or the peer has gone: ReadFrame would not wait for long.
bool HasBytes(int socket, const FrameReader& reader);

}  // namespace serve::engine
