// Records as a client and a worker write them (ipc/work_records.h), for tests of their readers.
// Thread safety: stateless.
#pragma once

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "cli/graph/records.h"
#include "ipc/call_trace.h"
#include "ipc/calls.h"
#include "ipc/roles.h"
#include "ipc/work_records.h"

namespace graph {

template <class T>
std::string PlainBytes(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

inline std::string Padded(std::string bytes, size_t multiple = 8) {
  bytes.resize((bytes.size() + multiple - 1) / multiple * multiple);
  return bytes;
}

inline std::string RecordBytes(ipc::TraceEvent event, const std::string& body) {
  event.begin_ns = event.end_ns = 1;
  event.amount = body.size();
  return PlainBytes(event) + Padded(body, sizeof event);
}

struct LaunchParts {
  uint32_t blocks = 3;
  std::string kernel;
  ImageHash image = {5, 6, 7, 8};
  std::vector<Range> ranges;
  std::vector<std::pair<std::string, Range>> variables;
  std::string parameters;
  bool begins_iteration = false;
};

inline std::string LaunchBytes(uint32_t number, uint32_t slot, const LaunchParts& parts) {
  ipc::SentHead head{.number = number, .thread = 1};
  head.flags = ipc::kBlockingStream;
  if (parts.begins_iteration) head.flags |= ipc::kBeginsIteration;
  std::vector<uint64_t> arguments(ipc::RowOf(ipc::Op::Launch).params.size());
  const uint64_t sizes[] = {parts.blocks, 1, 1, 32, 1, 1};
  std::copy(std::begin(sizes), std::end(sizes), arguments.begin() + 1);
  head.arguments = static_cast<uint32_t>(arguments.size());
  head.ranges = static_cast<uint32_t>(parts.ranges.size());
  head.variables = static_cast<uint32_t>(parts.variables.size());
  head.parameter_bytes = static_cast<uint32_t>(parts.parameters.size());
  head.name_bytes = static_cast<uint32_t>(parts.kernel.size());
  std::copy(parts.image.begin(), parts.image.end(), head.image.word);
  std::string body = PlainBytes(head);
  for (const uint64_t argument : arguments) body += PlainBytes(argument);
  for (const Range& range : parts.ranges)
    body += PlainBytes(ipc::SentRange{range.begin, range.bytes});
  for (const auto& [name, range] : parts.variables) {
    ipc::SentVariable variable{.range = {range.begin, range.bytes}};
    name.copy(variable.name, sizeof variable.name - 1);
    body += PlainBytes(variable);
  }
  body += Padded(parts.parameters) + Padded(parts.kernel);
  ipc::TraceEvent event;
  event.kind = ipc::TraceKind::kSent;
  event.op = static_cast<uint16_t>(ipc::Op::Launch);
  event.slot = slot;
  return RecordBytes(event, body);
}

inline std::string WaitedBytes(uint32_t number, const HostWait& wait) {
  ipc::TraceEvent event;
  event.kind = ipc::TraceKind::kWaited;
  return RecordBytes(event, PlainBytes(ipc::WaitedHead{.number = number,
                                                       .thread = 1,
                                                       .what = wait.what,
                                                       .slot = wait.slot,
                                                       .event = wait.event}));
}

inline std::string ImageBytes(const ImageHash& hash, uint64_t total, uint64_t offset,
                              const std::string& part) {
  ipc::ImageHead head{.total_bytes = total, .offset = offset};
  std::copy(hash.begin(), hash.end(), head.image.word);
  ipc::TraceEvent event;
  event.kind = ipc::TraceKind::kImage;
  return RecordBytes(event, PlainBytes(head) + part);
}

}  // namespace graph
