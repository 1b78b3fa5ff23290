#include "cli/graph/records.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "ipc/call_trace.h"
#include "ipc/calls/limits.h"

namespace graph {
namespace {

constexpr size_t kWordBytes = sizeof(uint64_t);

// Takes parts from the front of a record's bytes, each a multiple of 8 long.
class Parts {
 public:
  explicit Parts(std::string_view bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  bool empty() const { return bytes_.empty(); }
  template <class T>
  T Take() {
    T value{};
    const std::string_view taken = TakeBytes(sizeof value);
    if (ok_) std::memcpy(static_cast<void*>(&value), taken.data(), sizeof value);
    return value;
  }
  // `count` comes from the record: nothing is allocated before there are as many bytes.
  template <class T>
  std::vector<T> TakeAll(uint64_t count) {
    std::vector<T> values;
    const std::string_view taken = TakeBytes(std::min<uint64_t>(count, UINT32_MAX) * sizeof(T));
    values.resize(taken.size() / sizeof(T));
    if (!values.empty()) std::memcpy(static_cast<void*>(values.data()), taken.data(), taken.size());
    return values;
  }
  std::string_view TakeBytes(uint64_t bytes) {
    const uint64_t padded = (bytes + kWordBytes - 1) / kWordBytes * kWordBytes;
    ok_ = ok_ && padded <= bytes_.size();
    if (!ok_) return {};
    const std::string_view taken = bytes_.substr(0, bytes);
    bytes_.remove_prefix(padded);
    return taken;
  }

 private:
  std::string_view bytes_;
  bool ok_ = true;
};

// A range must not pass the end of the address space.
bool IsRange(const Range& range) {
  return range.bytes != 0 && range.begin + range.bytes > range.begin;
}

bool TakeLaunch(const ipc::SentHead& head, Parts* parts, SentCall* call) {
  for (const ipc::SentRange& range : parts->TakeAll<ipc::SentRange>(head.ranges))
    call->ranges.push_back({range.begin, range.bytes});
  for (const ipc::SentVariable& variable : parts->TakeAll<ipc::SentVariable>(head.variables)) {
    call->variables.emplace_back(
        std::string(variable.name, strnlen(variable.name, sizeof variable.name)),
        Range{variable.range.begin, variable.range.bytes});
  }
  call->parameters = parts->TakeAll<std::byte>(head.parameter_bytes);
  call->kernel = std::string(parts->TakeBytes(head.name_bytes));
  call->module = head.module;
  std::copy(std::begin(head.image.word), std::end(head.image.word), call->image.begin());
  return std::all_of(call->ranges.begin(), call->ranges.end(), IsRange) &&
         std::all_of(call->variables.begin(), call->variables.end(),
                     [](const auto& variable) { return IsRange(variable.second); });
}

bool TakeSent(const ipc::TraceEvent& event, std::string_view bytes, Record* record) {
  const std::optional<ipc::Op> op = ipc::OpFromUntrusted(event.op);
  Parts parts(bytes);
  const ipc::SentHead head = parts.Take<ipc::SentHead>();
  if (!op.has_value() || !parts.ok()) return false;
  SentCall call;
  call.op = *op;
  call.slot = event.slot;
  call.device = head.device;
  call.begins_iteration = (head.flags & ipc::kBeginsIteration) != 0;
  call.keeps_order_with_legacy = (head.flags & ipc::kBlockingStream) != 0;
  call.arguments = parts.TakeAll<uint64_t>(head.arguments);
  if (call.arguments.size() != ipc::RowOf(*op).params.size()) return false;
  if (call.slot != ipc::kNoTraceSlot && call.slot >= ipc::limits::kStreamsMax) return false;
  if (!TakeLaunch(head, &parts, &call) || !parts.ok() || !parts.empty()) return false;
  record->number = head.number;
  record->thread = head.thread;
  record->what = std::move(call);
  return true;
}

bool TakeWaited(std::string_view bytes, Record* record) {
  Parts parts(bytes);
  const ipc::WaitedHead head = parts.Take<ipc::WaitedHead>();
  if (!parts.ok() || !parts.empty() || head.what > ipc::WaitedFor::kEvent) return false;
  record->number = head.number;
  record->thread = head.thread;
  record->what = HostWait{head.what, head.slot, head.event};
  return true;
}

// Calls take(event, bytes) for each whole record, and returns the bytes of all that it has read. A
// size that no record has ends all: where the next one begins is not known.
template <class Take>
size_t ForEachRecord(std::string_view bytes, uint64_t* unreadable, Take take) {
  const std::string_view all = bytes;
  while (bytes.size() >= sizeof(ipc::TraceEvent)) {
    ipc::TraceEvent event;
    std::memcpy(static_cast<void*>(&event), bytes.data(), sizeof event);
    if (event.amount > ipc::kTraceRingBytes) {
      ++*unreadable;
      return all.size();
    }
    const uint64_t record_bytes = ipc::PlacesOfRecord(event.amount) * sizeof event;
    if (record_bytes > bytes.size()) break;
    if (!take(event, bytes.substr(sizeof event, event.amount))) ++*unreadable;
    bytes.remove_prefix(record_bytes);
  }
  return all.size() - bytes.size();
}

bool TakePart(const ipc::TraceEvent& event, std::string_view body, uint64_t* kept, Images* images) {
  Parts parts(body.substr(0, sizeof(ipc::ImageHead)));
  const ipc::ImageHead head = parts.Take<ipc::ImageHead>();
  if (event.kind != ipc::TraceKind::kImage || !parts.ok()) return false;
  body.remove_prefix(sizeof head);
  if (head.offset > head.total_bytes || body.size() > head.total_bytes - head.offset ||
      body.size() > kImagesBytesMax - *kept)
    return false;
  ImageHash hash;
  std::copy(std::begin(head.image.word), std::end(head.image.word), hash.begin());
  Image& image = (*images)[hash];
  if (image.complete || head.offset != image.bytes.size()) return false;
  image.total_bytes = head.total_bytes;
  image.bytes.append(body);
  *kept += body.size();
  image.complete = body.empty() || image.bytes.size() == image.total_bytes;
  return true;
}

}  // namespace

size_t DecodeRecordsUntrusted(std::string_view bytes, std::vector<Record>* records,
                              uint64_t* unreadable) {
  return ForEachRecord(
      bytes, unreadable, [records](const ipc::TraceEvent& event, std::string_view body) {
        Record record;
        const bool is_sent = event.kind == ipc::TraceKind::kSent;
        if (!is_sent && event.kind != ipc::TraceKind::kWaited) return false;
        if (!(is_sent ? TakeSent(event, body, &record) : TakeWaited(body, &record))) return false;
        if (!records->empty() && record.number <= records->back().number) return false;
        records->push_back(std::move(record));
        return true;
      });
}

size_t DecodeKernelNamesUntrusted(std::string_view bytes, std::map<uint32_t, std::string>* names,
                                  uint64_t* unreadable) {
  return ForEachRecord(bytes, unreadable, [&](const ipc::TraceEvent& event, std::string_view body) {
    if (event.kind != ipc::TraceKind::kKernel) return false;
    Parts parts(body);
    const ipc::KernelHead head = parts.Take<ipc::KernelHead>();
    if (!parts.ok() || head.number == 0) return false;
    return names->emplace(head.number, body.substr(sizeof head)).second;
  });
}

size_t DecodeImagesUntrusted(std::string_view bytes, Images* images, uint64_t* unreadable) {
  uint64_t kept = 0;
  for (const auto& [hash, image] : *images) kept += image.bytes.size();
  return ForEachRecord(bytes, unreadable, [&](const ipc::TraceEvent& event, std::string_view body) {
    return TakePart(event, body, &kept, images);
  });
}

}  // namespace graph
