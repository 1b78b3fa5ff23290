// The protocol of `laneway serve`: frames over a local stream socket, requests one way, answers in
// the same order the other way. All numbers are little-endian.
//
//     frame    u32 bytes of the body, then the body: a request or an answer
//     request  u8 kind (1 call, 2 describe), 3 zeros, u32 count, count tensors (of a call)
//     answer   u8 status (0 done, 1 refused, 2 failed), 3 zeros; done: u32 count, tensors;
//              otherwise a sentence
//     tensor   u16 bytes of the name, u8 element type (functions/manifest.h), u8 rank,
//              u32 zero, u64 side * rank, u64 bytes, name, bytes
//
// A describe is answered with one tensor named "manifest": its bytes are the manifest's JSON.
// Thread safety: functions without state; values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "functions/manifest.h"

namespace functions {

enum class RequestKind : uint8_t { kCall = 1, kDescribe = 2 };
enum class AnswerStatus : uint8_t {
  kDone,
  kRefused,  // the request is wrong, or the server has no room for it
  kFailed,   // the function could not be run
};

// The bytes lie where the frame does.
struct TensorView {
  TensorType type;
  std::span<const std::byte> bytes;
};

struct Request {
  RequestKind kind = RequestKind::kCall;
  std::vector<TensorView> tensors;
};

struct Answer {
  AnswerStatus status = AnswerStatus::kDone;
  std::vector<TensorView> tensors;
  std::string sentence;
};

// Whole frames, with their size in front.
Bytes EncodeRequest(const Request& request);
Bytes EncodeAnswer(const Answer& answer);

// Without the size in front. False: no frame of this protocol.
bool DecodeRequestUntrusted(std::span<const std::byte> body, Request* request);
bool DecodeAnswerUntrusted(std::span<const std::byte> body, Answer* answer);

// Collects bytes from a socket until a frame is whole.
class FrameReader {
 public:
  // False: a frame longer than limits::kFunctionFrameBytesMax is announced.
  bool AddUntrusted(std::span<const std::byte> bytes);
  // Whether a frame is whole; `body` is valid until the next call of Take or Add.
  bool Peek(std::span<const std::byte>* body) const;
  // REQUIRES: a frame is whole. Removes it.
  Bytes Take();
  size_t buffered() const { return buffer_.size(); }

 private:
  Bytes buffer_;
};

}  // namespace functions
