#include "cli/graph/operations.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "cli/table.h"
#include "ipc/call_trace.h"
#include "ipc/codec.h"

namespace graph {
namespace {

using scheduler::streams::Access;
using Kind = Operation::Kind;

bool IsSetting(std::string_view name) {
  for (const char* const word : {"Create", "Destroy", "Set", "Get", "Init"}) {
    if (name.find(word) != std::string_view::npos) return true;
  }
  return false;
}

// None: the call is no work of the device.
std::optional<Kind> KindOf(ipc::Op op) {
  const std::string_view name = ipc::RowOf(op).name;
  switch (ipc::LibraryOf(op)) {
    case ipc::Library::kCublas:
    case ipc::Library::kCublasLt:
      return IsSetting(name) ? std::nullopt : std::optional(Kind::kLibrary);
    case ipc::Library::kDriver:
      if (name.starts_with("cuMemset")) return Kind::kFill;
      return name.starts_with("cuMemcpy") ? std::optional(Kind::kCopy) : std::nullopt;
    case ipc::Library::kLaneway:
      break;
  }
  if (op == ipc::Op::Launch) return Kind::kKernel;
  if (op == ipc::Op::GraphLaunch) return Kind::kGraph;
  if (op == ipc::Op::HostCall) return Kind::kHostFunction;
  if (op == ipc::Op::FetchAhead || name.starts_with("Copy")) return Kind::kCopy;
  return std::nullopt;
}

// The ranges of a copy's or a fill's addresses, by the roles of its row. The first parameter is
// where it goes to.
std::vector<Touch> TouchesOfCall(const SentCall& call) {
  const std::span<const ipc::Param> params = ipc::RowOf(call.op).params;
  std::vector<const void*> values;
  for (const uint64_t& argument : call.arguments) values.push_back(&argument);
  std::vector<Touch> touches;
  for (size_t i = 0; i < params.size(); ++i) {
    if (params[i].role.kind != ipc::RoleKind::kDevicePtr) continue;
    const uint64_t begin = call.arguments[i];
    const uint64_t bytes = std::min(ipc::ReachOf(params, i, values.data()), UINT64_MAX - begin);
    if (bytes != 0) touches.push_back({{begin, bytes}, i == 0 ? Access::kWrite : Access::kRead});
  }
  return touches;
}

bool GoesToHost(ipc::Op op) {
  const std::string_view name = ipc::RowOf(op).name;
  return op == ipc::Op::FetchAhead || name.ends_with("StagedOut");
}

bool ComesFromHost(ipc::Op op) {
  const std::string_view name = ipc::RowOf(op).name;
  return op == ipc::Op::CopyInline || name.ends_with("StagedIn");
}

std::string NameOfMove(Kind kind, const SentCall& call, const std::vector<Touch>& touches) {
  const char* const what = kind == Kind::kFill      ? "fill "
                           : GoesToHost(call.op)    ? "read-back "
                           : ComesFromHost(call.op) ? "upload "
                                                    : "copy ";
  return absl::StrCat(what, cli::BytesText(touches.empty() ? 0 : touches[0].range.bytes));
}

void DescribeLaunch(const SentCall& call, const Prove& prove, Operation* operation) {
  operation->name = call.kernel.empty() ? "?" : call.kernel;
  for (size_t i = 0; i < 3; ++i) {
    operation->blocks[i] = static_cast<uint32_t>(call.arguments[1 + i]);
    operation->threads[i] = static_cast<uint32_t>(call.arguments[4 + i]);
  }
  Touched touched = prove(call);
  operation->touches = std::move(touched.touches);
  operation->unknown = std::move(touched.unknown);
}

Operation Describe(Kind kind, const SentCall& call, const Prove& prove) {
  Operation operation;
  operation.kind = kind;
  operation.slot = call.slot;
  switch (kind) {
    case Kind::kKernel:
      DescribeLaunch(call, prove, &operation);
      break;
    case Kind::kCopy:
    case Kind::kFill:
      operation.touches = TouchesOfCall(call);
      operation.name = NameOfMove(kind, call, operation.touches);
      break;
    case Kind::kLibrary:
      operation.name = std::string(ipc::RowOf(call.op).name);
      operation.unknown = "a library's call: its operands are not looked at";
      break;
    case Kind::kGraph:
      operation.name = "graph of the program";
      operation.unknown = "a graph of the program's own: its nodes are not looked at";
      break;
    default:
      operation.name = "host function";
      operation.unknown = "a function of the program on the host";
      break;
  }
  return operation;
}

// Calls that order streams, and are no operations.
void AddOrdering(const SentCall& call, IterationWork* work, ProgramOrder* order) {
  switch (call.op) {
    case ipc::Op::EventRecord:
      order->RecordEvent(call.arguments[0], call);
      break;
    case ipc::Op::cuStreamWaitEvent:
    case ipc::Op::cuStreamWaitEvent_ptsz:
      order->WaitForEvent(call.arguments[1], call);
      ++work->event_waits;
      break;
    case ipc::Op::StreamsJoin:
      order->Join();
      ++work->joins;
      break;
    default:
      break;
  }
}

}  // namespace

IterationWork OperationsOf(std::span<const Record> iteration,
                           const std::map<uint32_t, int64_t>& times_ns, const Prove& prove) {
  IterationWork work;
  ProgramOrder order;
  for (const Record& record : iteration) {
    const NodeId node = static_cast<NodeId>(work.operations.size());
    if (const HostWait* const wait = std::get_if<HostWait>(&record.what); wait != nullptr) {
      if (!order.AddHostWait(node, *wait, record.thread)) continue;
      work.operations.push_back({.kind = Kind::kHostWait,
                                 .name = "the host waits",
                                 .number = record.number,
                                 .slot = ipc::kNoTraceSlot});
      continue;
    }
    const SentCall& call = std::get<SentCall>(record.what);
    const std::optional<Kind> kind = KindOf(call.op);
    if (!kind.has_value()) {
      AddOrdering(call, &work, &order);
      continue;
    }
    work.operations.push_back(Describe(*kind, call, prove));
    Operation& operation = work.operations.back();
    operation.number = record.number;
    if (const auto time = times_ns.find(record.number); time != times_ns.end())
      operation.time_ns = time->second;
    order.AddWork(node, call, record.thread);
  }
  work.order = order.edges();
  return work;
}

}  // namespace graph
