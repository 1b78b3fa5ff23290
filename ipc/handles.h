// Names of driver objects on the wire. A client names every object that it creates; the worker maps
// the name to the driver's handle (ipc/door.h). A client's value is therefore another type than a
// driver handle: neither converts to the other, and only the codec translates.
//
// Names are small numbers per session and kind, so that a worker keeps them in a plain array. A
// client may use a name again once the message that ended it is queued. Thread safety: values.
#pragma once

#include <cstdint>

#include "ipc/calls/limits.h"
#include "ipc/calls/vendor.h"

namespace ipc {

enum class HandleKind : uint8_t {
  kNone,
  kContext,
  kStream,
  kEvent,
  kModule,
  kFunction,
  kLibrary,
  kKernel,
  kMemoryPool,
  kArray,
  kMipmappedArray,
  kGraph,
  kGraphNode,
  kGraphExec,
  kLinker,
  kBlas,
  kBlasLt,
  kLtMatmulDesc,
  kLtMatrixLayout,
  kLtPreference,
  kLtTransformDesc,
  kLtEmulationDesc,
  kCount,
};

// In the kStream space the two streams that every context has bear fixed names.
enum class HandleId : uint32_t {
  kNull = 0,
  kLegacyStream = 1,
  kPerThreadStream = 2,  // of the thread in the message header
  kFirst = 3,            // the first name that a client may give
  kEnd = limits::kHandlesMax,
};

// Names of a kind end here: so many objects of it may live, less the fixed ones.
constexpr uint32_t NamesEnd(HandleKind kind) {
  switch (kind) {
    case HandleKind::kStream:
      return limits::kStreamsMax;
    case HandleKind::kEvent:
      return limits::kEventsMax;
    case HandleKind::kModule:
      return limits::kModulesMax;
    case HandleKind::kFunction:
      return limits::kFunctionsMax;
    case HandleKind::kGraphExec:
      return limits::kGraphPiecesMax;
    case HandleKind::kArray:
    case HandleKind::kMipmappedArray:
      return limits::kArraysMax;
    case HandleKind::kBlas:
    case HandleKind::kBlasLt:
      return limits::kLibraryHandlesMax;
    case HandleKind::kLtMatmulDesc:
    case HandleKind::kLtMatrixLayout:
    case HandleKind::kLtPreference:
    case HandleKind::kLtTransformDesc:
    case HandleKind::kLtEmulationDesc:
      return limits::kLibraryObjectsMax;
    default:
      return limits::kHandlesMax;
  }
}

constexpr bool IsClientName(HandleId id) { return id >= HandleId::kFirst && id < HandleId::kEnd; }

// The kind of object that C type T refers to; kNone when T is no handle type.
template <class T>
inline constexpr HandleKind kKindOf = HandleKind::kNone;
template <>
inline constexpr HandleKind kKindOf<CUcontext> = HandleKind::kContext;
template <>
inline constexpr HandleKind kKindOf<CUstream> = HandleKind::kStream;
template <>
inline constexpr HandleKind kKindOf<CUevent> = HandleKind::kEvent;
template <>
inline constexpr HandleKind kKindOf<CUmodule> = HandleKind::kModule;
template <>
inline constexpr HandleKind kKindOf<CUfunction> = HandleKind::kFunction;
template <>
inline constexpr HandleKind kKindOf<CUlibrary> = HandleKind::kLibrary;
template <>
inline constexpr HandleKind kKindOf<CUkernel> = HandleKind::kKernel;
template <>
inline constexpr HandleKind kKindOf<CUmemoryPool> = HandleKind::kMemoryPool;
template <>
inline constexpr HandleKind kKindOf<CUarray> = HandleKind::kArray;
template <>
inline constexpr HandleKind kKindOf<CUmipmappedArray> = HandleKind::kMipmappedArray;
template <>
inline constexpr HandleKind kKindOf<CUgraph> = HandleKind::kGraph;
template <>
inline constexpr HandleKind kKindOf<CUgraphNode> = HandleKind::kGraphNode;
template <>
inline constexpr HandleKind kKindOf<CUgraphExec> = HandleKind::kGraphExec;
template <>
inline constexpr HandleKind kKindOf<CUlinkState> = HandleKind::kLinker;
template <>
inline constexpr HandleKind kKindOf<cublasHandle_t> = HandleKind::kBlas;
template <>
inline constexpr HandleKind kKindOf<cublasLtHandle_t> = HandleKind::kBlasLt;
template <>
inline constexpr HandleKind kKindOf<cublasLtMatmulDesc_t> = HandleKind::kLtMatmulDesc;
template <>
inline constexpr HandleKind kKindOf<cublasLtMatrixLayout_t> = HandleKind::kLtMatrixLayout;
template <>
inline constexpr HandleKind kKindOf<cublasLtMatmulPreference_t> = HandleKind::kLtPreference;
template <>
inline constexpr HandleKind kKindOf<cublasLtMatrixTransformDesc_t> = HandleKind::kLtTransformDesc;
template <>
inline constexpr HandleKind kKindOf<cublasLtEmulationDesc_t> = HandleKind::kLtEmulationDesc;

// A client's name for an object whose driver handle has type T.
template <class T>
struct Handle {
  static_assert(kKindOf<T> != HandleKind::kNone);
  static constexpr HandleKind kKind = kKindOf<T>;
  HandleId id = HandleId::kNull;
  bool operator==(const Handle&) const = default;
};

}  // namespace ipc
