// The worker's side of the one door: what decoding asks of a session, and what a session
// implements.
//
// Nothing that a client sends reaches a driver unasked: every name is translated here, every
// address accepted or not. The codec (ipc/codec_worker.h) calls Session; the worker implements it,
// one object per session. Thread safety: one thread at a time per object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ipc/calls/laneway_calls.h"
#include "ipc/handles.h"

namespace ipc {

class Session {
 public:
  virtual ~Session() = default;

  // The driver's handle for an object of this session; false when it has none of that name. Asked
  // once per use in a call that is about to be made: for a stream, and for a library handle bound
  // to a stream, this is where the worker orders the session's default streams. `id` may be any
  // number; for streams it may be kLegacyStream or kPerThreadStream. kNull is never asked: it is
  // the driver's null.
  virtual bool Translate(HandleKind kind, HandleId id, void** driver_handle) = 0;

  // Whether the client may give this name now. Asked just before the call that creates the object;
  // a call that replies later (kReplyLater) binds the name itself.
  virtual bool MayName(HandleKind kind, HandleId id) = 0;
  virtual void Bind(HandleKind kind, HandleId id, void* driver_handle) = 0;
  // The object was destroyed, or could not be: the name is free either way.
  virtual void Release(HandleKind kind, HandleId id) = 0;

  // Whether the session may use [address, address + bytes), bytes >= 1: its arena, its pinned
  // window, its modules' variables. For a call that touches it, all of it must be backed now.
  virtual bool Accepts(uint64_t address, uint64_t bytes) = 0;

  // The same for a matrix, or a batch of them, as the driver's cublasLtMatrixLayout_t says.
  virtual bool AcceptsMatrix(uint64_t address, void* layout) = 0;

  // Makes the library handle, or matmul descriptor, take its scalars from device or host memory.
  virtual bool UsePointerMode(HandleKind kind, void* driver_handle, bool device) = 0;

  // Room for what one call returns, 16-byte aligned, kBodyBytesMax bytes; valid until the next
  // call.
  virtual std::span<std::byte> Scratch() = 0;
};

// What a method of LanewayCalls returns when its reply comes later: the worker then sends it
// itself, made by EncodeReply (ipc/codec_worker.h).
inline constexpr CUresult kReplyLater = static_cast<CUresult>(-1);

// The worker's implementation of Laneway's own calls: one method per row of laneway.inc, with the C
// type that laneway_calls.h declares. Arguments are decoded and checked.
class LanewayCalls {
 public:
  virtual ~LanewayCalls() = default;
#define CALL(fn, ...) virtual laneway::fn fn = 0;
#include "ipc/calls/laneway.inc"
#undef CALL
};

}  // namespace ipc
