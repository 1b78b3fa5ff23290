#include "shim/rebuild/record.h"

#include <array>
#include <bit>
#include <memory>

#include "ipc/calls/laneway_calls.h"
#include "ipc/roles.h"
#include "shim/blas_state.h"
#include "shim/handle_table.h"
#include "shim/rebuild/images.h"
#include "shim/state.h"

namespace shim {
namespace {

using ipc::HandleKind;
using ipc::Op;
using ipc::RoleKind;

enum class Verb : uint8_t {
  kNothing,
  kCreate,     // NewHandle
  kEnd,        // EndHandle
  kSet,        // a setting of its first handle
  kSetNamed,   // the same; parameter 1 tells which
  kSetStream,  // of a cuBLAS handle: its workspace is the library's own again
  kGlobal,     // an address that the program has learned
  kRange,      // a range of the session's pinned file
  kEndRange,
  kWrite,  // of a copy or a fill: matters when a module's variable is written
  kLane,   // how much ephemeral memory the session needs
  kReset,  // everything of the context ends
};

constexpr Op kSettings[] = {
    Op::cuFuncSetCacheConfig,
    Op::cuFuncSetSharedMemConfig,
    Op::cublasSetWorkspace_v2,
    Op::cublasSetAtomicsMode,
    Op::cublasSetMathMode,
    Op::cublasSetSmCountTarget,
    Op::cublasSetEmulationStrategy,
    Op::cublasSetEmulationSpecialValuesSupport,
    Op::cublasSetFixedPointEmulationMantissaControl,
    Op::cublasSetFixedPointEmulationMaxMantissaBitCount,
    Op::cublasSetFixedPointEmulationMantissaBitOffset,
    Op::GraphSeal,
    Op::GraphCaptured,
};
constexpr Op kNamedSettings[] = {
    Op::cuFuncSetAttribute,
    Op::cublasLtMatmulDescSetAttribute,
    Op::cublasLtMatrixLayoutSetAttribute,
    Op::cublasLtMatrixTransformDescSetAttribute,
    Op::cublasLtMatmulPreferenceSetAttribute,
    Op::GraphKernel,
    Op::GraphFill,
    Op::GraphCopy,
    Op::GraphEmpty,
    Op::GraphChild,
    Op::GraphEdges,
    Op::GraphSetKernel,
    Op::GraphCondition,
    Op::GraphConditional,
    Op::GraphInside,
};

// Parameter 0 is where they write.
constexpr Op kWrites[] = {
    Op::CopyInline,        Op::CopyStagedIn,        Op::CopyDevice,
    Op::CopyPitched,       Op::CopyPitchedStagedIn, Op::cuMemcpyDtoDAsync_v2,
    Op::cuMemsetD8Async,   Op::cuMemsetD16Async,    Op::cuMemsetD32Async,
    Op::cuMemsetD2D8Async, Op::cuMemsetD2D16Async,  Op::cuMemsetD2D32Async,
};

constexpr size_t kOps = 0x4000;

using Verbs = std::array<Verb, kOps>;

// Apart from VerbOf, which every call asks: the frame of this one is large.
[[gnu::noinline]] const Verbs* MakeVerbs() {
  Verbs* const made = new Verbs{};
  Verbs& verbs = *made;
  for (size_t library = 0; library < ipc::kLibraries; ++library) {
    const std::span<const ipc::Row> rows = ipc::RowsOf(static_cast<ipc::Library>(library));
    for (size_t i = 0; i < rows.size(); ++i) {
      Verb& verb = verbs[static_cast<size_t>(ipc::OpAt(static_cast<ipc::Library>(library), i))];
      for (const ipc::Param& param : rows[i].params) {
        if (param.role.kind == RoleKind::kNewHandle) verb = Verb::kCreate;
        if (param.role.kind == RoleKind::kEndHandle) verb = Verb::kEnd;
      }
    }
  }
  for (const Op op : kSettings) verbs[static_cast<size_t>(op)] = Verb::kSet;
  for (const Op op : kNamedSettings) verbs[static_cast<size_t>(op)] = Verb::kSetNamed;
  verbs[static_cast<size_t>(Op::cublasSetStream_v2)] = Verb::kSetStream;
  verbs[static_cast<size_t>(Op::GetGlobal)] = Verb::kGlobal;
  verbs[static_cast<size_t>(Op::PinnedAlloc)] = Verb::kRange;
  verbs[static_cast<size_t>(Op::PinnedFree)] = Verb::kEndRange;
  verbs[static_cast<size_t>(Op::LaneKeep)] = Verb::kRange;
  verbs[static_cast<size_t>(Op::LaneDrop)] = Verb::kEndRange;
  for (const Op op : kWrites) verbs[static_cast<size_t>(op)] = Verb::kWrite;
  verbs[static_cast<size_t>(Op::LaneReserve)] = Verb::kLane;
  verbs[static_cast<size_t>(Op::ContextReset)] = Verb::kReset;
  return made;
}

Verb VerbOf(Op op) {
  static const Verbs* const verbs = MakeVerbs();
  return (*verbs)[static_cast<size_t>(op)];
}

uint64_t WordAt(ipc::Values values, size_t i) { return *static_cast<const uint64_t*>(values[i]); }

// The first object that the call names in a parameter of this role. Streams that every context has
// bear no name of the client's.
ObjectName NameIn(const Sent& sent, RoleKind role) {
  const ipc::Row& row = ipc::RowOf(sent.op);
  for (size_t i = 0; i < row.params.size(); ++i) {
    if (row.params[i].role.kind != role) continue;
    const uint64_t value = WordAt(sent.values, i);
    if (KindOf(value) == HandleKind::kNone) return {};
    return {row.params[i].handle, NameOf(value)};
  }
  return {};
}

// Settings of one object differ by call, and by the number of the attribute.
uint64_t DetailOf(const Sent& sent, bool named) {
  const uint64_t op = uint64_t{static_cast<uint16_t>(sent.op)} + 1;
  const uint32_t attribute = named ? *static_cast<const uint32_t*>(sent.values[1]) : 0;
  return op << 32 | attribute;
}

Kept KeptOf(const Sent& sent) {
  Kept kept;
  kept.op = sent.op;
  kept.message = sent.message;
  kept.awaits_reply = sent.awaits_reply;
  return kept;
}

RebuildLog::Token RecordNew(const Sent& sent, RebuildLog* log) {
  Kept kept = KeptOf(sent);
  kept.subject = {sent.encoded->names[0].kind, sent.encoded->names[0].id};
  kept.refers_to = NameIn(sent, RoleKind::kHandle);
  if (sent.op == Op::LoadModule) {
    kept.image = Images::Find(**static_cast<const ipc::ModuleHash* const*>(sent.values[1]));
  }
  return log->Add(kept, sent.position);
}

// A rebuilt graph has a captured call with the settings that its handle has then.
bool HasCapturedCalls(ObjectName handle) {
  if (handle.kind != HandleKind::kBlas) return false;
  const auto& handles = BlasState::Process().handles;
  const BlasHandle* const found = handles.Find(handles.ValueOf(handle.id));
  return found != nullptr && found->captured;
}

RebuildLog::Token RecordSetting(const Sent& sent, bool named, RebuildLog* log) {
  Kept kept = KeptOf(sent);
  kept.subject = NameIn(sent, RoleKind::kHandle);
  kept.refers_to = NameIn(sent, RoleKind::kStream);
  kept.detail = DetailOf(sent, named);
  if (sent.op == Op::cublasSetStream_v2) {
    const uint64_t workspace = uint64_t{static_cast<uint16_t>(Op::cublasSetWorkspace_v2)} + 1;
    log->EndDetail(kept.subject, workspace << 32, sent.position, sent.consumed);
  } else if (sent.op != Op::cublasSetWorkspace_v2 && HasCapturedCalls(kept.subject)) {
    if (log->HasSame(kept)) return RebuildLog::kNoToken;  // stays before the captured calls
    log->SetIncomplete(ipc::kCapturedLibrary);
  }
  return log->Add(kept, sent.position);
}

// Each name of a module's variables is asked for again; the message tells them apart.
RebuildLog::Token RecordGlobal(const Sent& sent, RebuildLog* log) {
  Kept kept = KeptOf(sent);
  kept.subject = NameIn(sent, RoleKind::kHandle);
  const std::string_view name = *static_cast<const char* const*>(sent.values[3]);
  kept.detail = std::hash<std::string_view>()(name) | uint64_t{1} << 63;
  return log->Add(kept, sent.position);
}

// A module's variable lies outside the session's slot. What the host wrote into it within the
// message is written again; other ways are remembered as an obstacle.
RebuildLog::Token RecordWrite(const Sent& sent, RebuildLog* log) {
  const uint64_t address = WordAt(sent.values, 0);
  if (address - sent.arena_base < ipc::limits::kSlotBytes) return RebuildLog::kNoToken;
  Allocation variable;
  if (!State::Process().variables.Find(address, &variable)) return RebuildLog::kNoToken;
  if (sent.op != Op::CopyInline || NameIn(sent, RoleKind::kStream).kind != HandleKind::kNone) {
    log->SetIncomplete(ipc::kWrittenVariable);
    return RebuildLog::kNoToken;
  }
  Kept kept = KeptOf(sent);
  kept.subject = {HandleKind::kModule, NameOf(variable.context)};
  kept.detail = (address << 16 ^ WordAt(sent.values, 2)) | uint64_t{1} << 62;
  return log->Add(kept, sent.position);
}

// What a library does in a capture is a part of the piece that it makes.
RebuildLog::Token RecordCaptured(const Sent& sent, RebuildLog* log) {
  Kept kept = KeptOf(sent);
  kept.subject = {HandleKind::kGraphExec, NameOf(sent.capture)};
  kept.detail = DetailOf(sent, false);
  return log->Add(kept, sent.position);
}

}  // namespace

bool IsRecorded(Op op) { return VerbOf(op) != Verb::kNothing; }

bool NeedsPosition(Op op) {
  const bool within_device = op == Op::CopyDevice || op == Op::cuMemcpyDtoDAsync_v2 ||
                             op == Op::cuMemsetD8Async || op == Op::cuMemsetD16Async ||
                             op == Op::cuMemsetD32Async;
  return IsRecorded(op) && !within_device;
}

RebuildLog::Token Record(const Sent& sent, RebuildLog* log) {
  if (sent.capture != 0) return RecordCaptured(sent, log);
  const Verb verb = VerbOf(sent.op);
  switch (verb) {
    case Verb::kNothing:
      break;
    case Verb::kCreate:
      return RecordNew(sent, log);
    case Verb::kEnd:
      if (HasCapturedCalls(NameIn(sent, RoleKind::kEndHandle)))
        log->SetIncomplete(ipc::kCapturedLibrary);
      log->End(NameIn(sent, RoleKind::kEndHandle), sent.position, sent.consumed);
      break;
    case Verb::kSet:
    case Verb::kSetNamed:
    case Verb::kSetStream:
      return RecordSetting(sent, verb == Verb::kSetNamed, log);
    case Verb::kGlobal:
      return RecordGlobal(sent, log);
    case Verb::kRange: {
      Kept kept = KeptOf(sent);
      kept.detail = WordAt(sent.values, 0);
      return log->Add(kept, sent.position);
    }
    case Verb::kWrite:
      return RecordWrite(sent, log);
    case Verb::kLane: {
      Kept kept = KeptOf(sent);
      kept.detail = DetailOf(sent, false);
      return log->Add(kept, sent.position);
    }
    case Verb::kEndRange:
      log->EndDetail({}, WordAt(sent.values, 0), sent.position, sent.consumed);
      break;
    case Verb::kReset:
      log->EndObjects(sent.position, sent.consumed);
      break;
  }
  return RebuildLog::kNoToken;
}

}  // namespace shim
