// The records of a trace in detail (ipc/work_records.h), as plain values: what a job's session sent
// to the device and waited for, and the images of its modules.
//
// The bytes are the traced program's word, and each record is checked before it is kept. Pure.
// Thread safety: stateless.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ipc/calls.h"
#include "ipc/work_records.h"
#include "scheduler/streams/range.h"

namespace graph {

using scheduler::streams::Range;
using ImageHash = std::array<uint64_t, 4>;

// A call that went to the worker.
struct SentCall {
  ipc::Op op{};
  uint32_t slot = 0;  // of its stream; ipc::kNoTraceSlot: none
  uint32_t device = 0;
  bool begins_iteration = false;
  bool keeps_order_with_legacy = false;  // its stream does
  std::vector<uint64_t> arguments;       // as many as the call's row has
  // Of a launch.
  std::string kernel;  // empty: not known
  uint64_t module = 0;
  ImageHash image{};
  std::vector<Range> ranges;  // allocations that the parameters point into
  std::vector<std::pair<std::string, Range>> variables;
  std::vector<std::byte> parameters;
};

struct HostWait {
  ipc::WaitedFor what = ipc::WaitedFor::kStream;
  uint32_t slot = 0;
  uint64_t event = 0;
};

struct Record {
  uint32_t number = 0;  // grows by one, where none was lost
  uint32_t thread = 0;
  std::variant<SentCall, HostWait> what;
};

// Appends the whole records at the beginning of `bytes`. Counts those that make no sense. Returns
// how many bytes it has read: the rest is the beginning of a record whose end is yet to come.
size_t DecodeRecordsUntrusted(std::string_view bytes, std::vector<Record>* records,
                              uint64_t* unreadable);

struct Image {
  std::string bytes;
  uint64_t total_bytes = 0;  // 0: the worker keeps it no more
  bool complete = false;     // there is nothing more to come: all bytes, or none
};
using Images = std::map<ImageHash, Image>;
// Under this there is an empty image when all images so far were told.
inline constexpr ImageHash kAllTold{};

// A program's images are no longer than this together; parts of more are not read.
inline constexpr uint64_t kImagesBytesMax = 1u << 30;

// The same of kernels' names, by number.
size_t DecodeKernelNamesUntrusted(std::string_view bytes, std::map<uint32_t, std::string>* names,
                                  uint64_t* unreadable);

// The same of parts of images.
size_t DecodeImagesUntrusted(std::string_view bytes, Images* images, uint64_t* unreadable);

}  // namespace graph
