// Records of what a session's client gives the device, of its kernels' names and of the images that
// they are from: two tracks of a trace (ipc/call_trace.h), which `laneway trace --calls`,
// `laneway graph` and `laneway kernels JOB` read.
//
// A record is a TraceEvent and `amount` bytes after it. Of a kSent record the bytes are
//     SentHead | arguments, 8 bytes each | ranges | variables | parameters of the kernel | name
// where each part begins at a multiple of 8 from the first byte. Arguments are those of the call's
// row that fit into 8 bytes, as the program gave them, and zeros for all others. Ranges are the
// allocations that hold the addresses among the arguments and in the parameters at this moment.
// Variables are those of the kernel's module whose address the program knows.
//
// kSent and kWaited records have numbers that grow by one, also for a record that found no room: so
// a gap shows. The number of a kSent record travels in the message's header.
//
// Of a kKernel record the bytes are KernelHead and the kernel's name as its module has it. The
// numbers of names begin at 1 with each trace.
//
// Of a kImage record the bytes are ImageHead and a part of the image. A record whose ImageHead is
// all zeros says that all images so far were told. Thread safety: plain data.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ipc/calls/laneway_calls.h"
#include "ipc/calls/limits.h"

namespace ipc {

enum SentFlags : uint32_t {
  kBeginsIteration = 1,  // a boundary stands before the message
  kBlockingStream = 2,   // its stream keeps order with the legacy default stream of its device
};

struct SentHead {
  uint32_t number = 0;
  uint32_t thread = 0;  // client's small number
  uint32_t flags = 0;   // SentFlags
  uint32_t device = 0;  // ordinal
  uint32_t arguments = 0;
  uint32_t ranges = 0;
  uint32_t variables = 0;
  uint32_t parameter_bytes = 0;
  uint32_t name_bytes = 0;  // of the kernel
  uint32_t reserved = 0;
  uint64_t module = 0;  // of the kernel: one load of the image
  ModuleHash image;
};
static_assert(sizeof(SentHead) == 80);

struct SentRange {
  uint64_t begin = 0;
  uint64_t bytes = 0;
};

struct SentVariable {
  SentRange range;
  char name[112] = {};  // zero-terminated; one that is longer is cut
};

// What the program has waited for.
enum class WaitedFor : uint32_t { kStream = 0, kDevice = 1, kEvent = 2 };

struct WaitedHead {
  uint32_t number = 0;
  uint32_t thread = 0;
  WaitedFor what = WaitedFor::kStream;
  uint32_t slot = 0;   // kStream: of the stream
  uint64_t event = 0;  // kEvent: as the program names it
};
static_assert(sizeof(WaitedHead) == 24 && sizeof(SentVariable) == 128);

struct ImageHead {
  ModuleHash image;
  uint64_t total_bytes = 0;
  uint64_t offset = 0;
};
static_assert(sizeof(ImageHead) == 48);

struct KernelHead {
  uint32_t number = 0;
  uint32_t reserved = 0;
};
static_assert(sizeof(KernelHead) == 8);

inline constexpr uint32_t kSentVariablesMax = 64;
inline constexpr uint32_t kSentNameBytesMax = 4096;
inline constexpr size_t kImagePartBytesMax = 32u << 10;

}  // namespace ipc
