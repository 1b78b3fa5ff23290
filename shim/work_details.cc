#include "shim/work_details.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "ipc/futex.h"
#include "shim/call_trace.h"
#include "shim/state.h"
#include "shim/streams.h"
#include "shim/thread_state.h"

namespace shim {
namespace {

// Positions among the parameters of ipc::laneway::Launch.
constexpr size_t kFunctionAt = 0, kParametersAt = 11, kParameterBytesAt = 12;
constexpr size_t kWordBytes = sizeof(uint64_t);

bool IsWord(const ipc::Param& param) {
  switch (param.role.kind) {
    case ipc::RoleKind::kValue:
      return param.bytes <= kWordBytes;
    case ipc::RoleKind::kHandle:
    case ipc::RoleKind::kEndHandle:
    case ipc::RoleKind::kStream:
    case ipc::RoleKind::kDevicePtr:
      return true;
    default:
      return false;
  }
}

uint64_t WordOf(const ipc::Param& param, const void* value) {
  if (param.role.kind == ipc::RoleKind::kValue)
    return static_cast<uint64_t>(ipc::IntegerOf(param, value));
  uint64_t word = 0;
  std::memcpy(&word, value, sizeof word);
  return word;
}

// Whether work on the stream waits for earlier work of the legacy stream of its device.
bool KeepsOrderWithLegacy(uint32_t slot) {
  if (slot < ipc::limits::kLegacySlots || slot >= ipc::limits::kStreamsMax) return true;
  const ipc::HandleId name = static_cast<ipc::HandleId>(
      slot - ipc::limits::kLegacySlots + static_cast<uint32_t>(ipc::HandleId::kFirst));
  const Streams& streams = Streams::Process();
  const Stream* const stream = streams.table.Find(streams.table.ValueOf(name));
  return stream == nullptr || (stream->flags & CU_STREAM_NON_BLOCKING) == 0;
}

std::optional<ipc::SentRange> RangeOf(uint64_t address) {
  const State& state = State::Process();
  Allocation found;
  if (!state.allocations.Find(address, &found) && !state.variables.Find(address, &found))
    return std::nullopt;
  return ipc::SentRange{found.base, found.bytes};
}

std::vector<ipc::SentVariable> VariablesOf(const Module& module) {
  std::vector<ipc::SentVariable> variables;
  const base::MutexLock lock(&module.variables_mutex);
  for (const auto& [name, range] : module.variables) {
    if (variables.size() == ipc::kSentVariablesMax) break;
    ipc::SentVariable& variable = variables.emplace_back();
    variable.range = {range.begin, range.bytes};
    name.copy(variable.name, sizeof variable.name - 1);
  }
  return variables;
}

template <class T>
std::span<const std::byte> BytesOf(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

}  // namespace

// Never destroyed: the program's own destructors may make calls.
WorkDetails& WorkDetails::Process() {
  static WorkDetails* const details = new WorkDetails;
  return *details;
}

bool WorkDetails::Open() {
  std::byte* area = nullptr;
  const uint32_t trace = TraceInDetail(&area);
  if (trace == 0) return false;
  if (trace == trace_) return true;
  trace_ = trace;
  number_ = 0;
  writer_ = ipc::TraceWriter(area, ipc::kSentTrack, ThisThread().number);
  return true;
}

uint32_t WorkDetails::OnSent(const Sent& sent) {
  const base::MutexLock lock(&mutex_);
  if ((sent.values == nullptr && !ipc::RowOf(sent.op).params.empty()) || !Open()) return 0;
  ipc::SentHead head{.number = ++number_, .thread = ThisThread().number, .device = sent.device};
  if (sent.begins_iteration) head.flags |= ipc::kBeginsIteration;
  if (KeepsOrderWithLegacy(sent.slot)) head.flags |= ipc::kBlockingStream;
  bytes_.resize(sizeof head);
  AddArguments(sent, &head);
  std::memcpy(bytes_.data(), &head, sizeof head);
  Write(ipc::TraceKind::kSent, static_cast<uint16_t>(sent.op), sent.slot);
  return number_;
}

void WorkDetails::OnWaited(ipc::WaitedFor what, uint32_t slot, uint64_t event) {
  const base::MutexLock lock(&mutex_);
  if (!Open()) return;
  bytes_.clear();
  Append(ipc::WaitedHead{.number = ++number_,
                         .thread = ThisThread().number,
                         .what = what,
                         .slot = slot,
                         .event = event});
  Write(ipc::TraceKind::kWaited, 0, ipc::kNoTraceSlot);
}

void WorkDetails::AddArguments(const Sent& sent, ipc::SentHead* head) {
  const std::span<const ipc::Param> params = ipc::RowOf(sent.op).params;
  for (size_t i = 0; i < params.size(); ++i)
    Append(IsWord(params[i]) ? WordOf(params[i], sent.values[i]) : uint64_t{0});
  head->arguments = static_cast<uint32_t>(params.size());
  if (sent.op == ipc::Op::Launch) AddKernel(sent, head);
}

void WorkDetails::AddKernel(const Sent& sent, ipc::SentHead* head) {
  const State& state = State::Process();
  uint64_t value = 0;
  std::memcpy(&value, sent.values[kFunctionAt], sizeof value);
  const Function* const function = state.functions.Find(value);
  const Module* const module = function == nullptr ? nullptr : state.modules.Find(function->module);
  const std::byte* parameters = nullptr;
  std::memcpy(&parameters, sent.values[kParametersAt], sizeof parameters);
  std::memcpy(&head->parameter_bytes, sent.values[kParameterBytesAt], sizeof head->parameter_bytes);
  const std::span<const std::byte> block(parameters,
                                         parameters == nullptr ? 0 : head->parameter_bytes);
  head->parameter_bytes = static_cast<uint32_t>(block.size());
  AddRanges(block, head);
  if (module != nullptr) {
    head->module = function->module;
    head->image = module->image;
    const std::vector<ipc::SentVariable> variables = VariablesOf(*module);
    head->variables = static_cast<uint32_t>(variables.size());
    AppendPadded(BytesOf(variables));
  }
  AppendPadded(block);
  if (function == nullptr) return;
  const size_t name_bytes = std::min<size_t>(function->name.size(), ipc::kSentNameBytesMax);
  head->name_bytes = static_cast<uint32_t>(name_bytes);
  AppendPadded(std::as_bytes(std::span(function->name.data(), name_bytes)));
}

// Each allocation that a word points into, once.
void WorkDetails::AddRanges(std::span<const std::byte> words, ipc::SentHead* head) {
  std::vector<ipc::SentRange> ranges;
  for (size_t at = 0; at + kWordBytes <= words.size(); at += kWordBytes) {
    uint64_t word = 0;
    std::memcpy(&word, words.data() + at, sizeof word);
    const auto holds = [word](const ipc::SentRange& range) {
      return word - range.begin < range.bytes;
    };
    if (word == 0 || std::any_of(ranges.begin(), ranges.end(), holds)) continue;
    if (const std::optional<ipc::SentRange> range = RangeOf(word); range.has_value())
      ranges.push_back(*range);
  }
  head->ranges = static_cast<uint32_t>(ranges.size());
  AppendPadded(BytesOf(ranges));
}

void WorkDetails::Write(ipc::TraceKind kind, uint16_t op, uint32_t slot) {
  const int64_t now_ns = ipc::MonotonicNs();
  if (!writer_.AddRecord({now_ns, now_ns, kind, op, slot, 0}, bytes_)) writer_.CountLost();
}

template <class T>
void WorkDetails::Append(const T& value) {
  AppendPadded(std::as_bytes(std::span(&value, 1)));
}

void WorkDetails::AppendPadded(std::span<const std::byte> bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  bytes_.resize((bytes_.size() + kWordBytes - 1) / kWordBytes * kWordBytes);
}

}  // namespace shim
