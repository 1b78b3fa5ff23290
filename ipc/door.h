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
#include "ipc/driver_table.h"
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

  // True when the client may give this name now. Asked just before the call that creates the
  // object; a call that replies later (kReplyLater) binds the name itself.
  virtual bool MayName(HandleKind kind, HandleId id) = 0;
  virtual void Bind(HandleKind kind, HandleId id, void* driver_handle) = 0;
  // The object was destroyed, or could not be: the name is free either way.
  virtual void Release(HandleKind kind, HandleId id) = 0;

  // True when the session may use [address, address + bytes), bytes >= 1: its arena, its pinned
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
// type that laneway_calls.h declares, in the interface of the part that serves the row. Arguments
// are decoded and checked. A row that no part declares does not compile (invokers_laneway.cc).

// The session itself, and its iterations.
class SessionCalls {
 public:
  virtual ~SessionCalls() = default;
  virtual laneway::Ping Ping = 0;
  virtual laneway::GetDeviceInfo GetDeviceInfo = 0;
  virtual laneway::ContextReset ContextReset = 0;
  virtual laneway::Boundary Boundary = 0;
  virtual laneway::GrowHeap GrowHeap = 0;
};

// Allocation: persistent memory, the lane, pinned host memory.
class MemoryCalls {
 public:
  virtual ~MemoryCalls() = default;
  virtual laneway::MemInfo MemInfo = 0;
  virtual laneway::PinnedAlloc PinnedAlloc = 0;
  virtual laneway::PinnedFree PinnedFree = 0;
  virtual laneway::ArenaMap ArenaMap = 0;
  virtual laneway::ArenaUnmap ArenaUnmap = 0;
  virtual laneway::ArenaCreate ArenaCreate = 0;
  virtual laneway::ArenaMove ArenaMove = 0;
  virtual laneway::ShareRange ShareRange = 0;
  virtual laneway::MapShared MapShared = 0;
  virtual laneway::LaneReserve LaneReserve = 0;
  virtual laneway::LaneKeep LaneKeep = 0;
  virtual laneway::LaneDrop LaneDrop = 0;
};

// Copies between the client and the device, and within the device.
class CopyCalls {
 public:
  virtual ~CopyCalls() = default;
  virtual laneway::CopyInline CopyInline = 0;
  virtual laneway::CopyStagedIn CopyStagedIn = 0;
  virtual laneway::CopyStagedOut CopyStagedOut = 0;
  virtual laneway::CopyDevice CopyDevice = 0;
  virtual laneway::CopyPitched CopyPitched = 0;
  virtual laneway::CopyPitchedStagedIn CopyPitchedStagedIn = 0;
  virtual laneway::CopyPitchedStagedOut CopyPitchedStagedOut = 0;
  virtual laneway::FetchAhead FetchAhead = 0;
};

// Module images, functions, launches.
class ModuleCalls {
 public:
  virtual ~ModuleCalls() = default;
  virtual laneway::HasModule HasModule = 0;
  virtual laneway::ModuleBytes ModuleBytes = 0;
  virtual laneway::LoadModule LoadModule = 0;
  virtual laneway::UnloadModule UnloadModule = 0;
  virtual laneway::GetFunction GetFunction = 0;
  virtual laneway::GetGlobal GetGlobal = 0;
  virtual laneway::FunctionNames FunctionNames = 0;
  virtual laneway::Launch Launch = 0;
  virtual laneway::LinkImages LinkImages = 0;
  virtual laneway::ImageBytes ImageBytes = 0;
};

// Streams, events, host functions.
class StreamCalls {
 public:
  virtual ~StreamCalls() = default;
  virtual laneway::StreamCreate StreamCreate = 0;
  virtual laneway::StreamDestroy StreamDestroy = 0;
  virtual laneway::StreamMark StreamMark = 0;
  virtual laneway::StreamsJoin StreamsJoin = 0;
  virtual laneway::EventRecord EventRecord = 0;
  virtual laneway::EventWake EventWake = 0;
  virtual laneway::HostCall HostCall = 0;
};

// Pieces of executable graphs.
class GraphCalls {
 public:
  virtual ~GraphCalls() = default;
  virtual laneway::GraphBegin GraphBegin = 0;
  virtual laneway::GraphKernel GraphKernel = 0;
  virtual laneway::GraphFill GraphFill = 0;
  virtual laneway::GraphCopy GraphCopy = 0;
  virtual laneway::GraphEmpty GraphEmpty = 0;
  virtual laneway::GraphEdges GraphEdges = 0;
  virtual laneway::GraphChild GraphChild = 0;
  virtual laneway::GraphSeal GraphSeal = 0;
  virtual laneway::GraphSetKernel GraphSetKernel = 0;
  virtual laneway::GraphLaunch GraphLaunch = 0;
  virtual laneway::GraphEnd GraphEnd = 0;
  virtual laneway::GraphCapture GraphCapture = 0;
  virtual laneway::GraphCaptured GraphCaptured = 0;
};

// Conditional nodes of such pieces.
class ConditionalCalls {
 public:
  virtual ~ConditionalCalls() = default;
  virtual laneway::GraphCondition GraphCondition = 0;
  virtual laneway::GraphConditional GraphConditional = 0;
  virtual laneway::GraphInside GraphInside = 0;
};

// Orders of launches in chunks.
class OrderCalls {
 public:
  virtual ~OrderCalls() = default;
  virtual laneway::OrderLaunches OrderLaunches = 0;
  virtual laneway::OrderRenamedLaunches OrderRenamedLaunches = 0;
  virtual laneway::ForgetOrders ForgetOrders = 0;
};

// Arrays, textures, surfaces, and copies of arrays.
class ArrayCalls {
 public:
  virtual ~ArrayCalls() = default;
  virtual laneway::ArrayCreate ArrayCreate = 0;
  virtual laneway::ArrayDestroy ArrayDestroy = 0;
  virtual laneway::MipmapCreate MipmapCreate = 0;
  virtual laneway::MipmapLevel MipmapLevel = 0;
  virtual laneway::MipmapDestroy MipmapDestroy = 0;
  virtual laneway::TextureOfArray TextureOfArray = 0;
  virtual laneway::TextureOfMipmap TextureOfMipmap = 0;
  virtual laneway::TextureOfMemory TextureOfMemory = 0;
  virtual laneway::TextureDestroy TextureDestroy = 0;
  virtual laneway::SurfaceOfArray SurfaceOfArray = 0;
  virtual laneway::SurfaceDestroy SurfaceDestroy = 0;
  virtual laneway::CopyArray CopyArray = 0;
  virtual laneway::CopyArrayStaged CopyArrayStaged = 0;
  virtual laneway::CopyArrays CopyArrays = 0;
};

// All parts in one object, for small implementations.
class LanewayCalls : public SessionCalls,
                     public MemoryCalls,
                     public CopyCalls,
                     public ModuleCalls,
                     public StreamCalls,
                     public GraphCalls,
                     public ConditionalCalls,
                     public OrderCalls,
                     public ArrayCalls {};

inline LanewayParts::LanewayParts(LanewayCalls* all)
    : parts_(all, all, all, all, all, all, all, all, all) {}

}  // namespace ipc
