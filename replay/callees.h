// What the operations of a job call: each kernel, library call, copy and fill once, with the layout
// of its arguments.
//
// A kernel is named by its module's content and its name there, so that the same kernel of the next
// run is the same callee. The number of a callee stays as it is for as long as its table lives.
// Thread safety: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace replay {

enum class OpKind : uint8_t {
  kKernel,       // a LaunchShape, then the parameters as the driver gets them
  kCopy,         // CopyArguments
  kUpload,       // HostCopyArguments: from host memory that only the program sees
  kDownload,     // HostCopyArguments: to such memory
  kFill,         // FillArguments
  kEventRecord,  // EventArguments
  kEventWait,    // EventArguments: the stream waits for it
  kLibraryCall,  // the fields that the recorder gives
  kGraphLaunch,  // GraphArguments: a graph of the program's own
};
inline constexpr uint8_t kOpKinds = 9;

struct LaunchShape {
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  uint32_t shared_bytes = 0;
  uint32_t reserved = 0;
};
static_assert(sizeof(LaunchShape) == 32);

// `height` rows of `width` bytes; the bytes themselves are no arguments.
struct CopyArguments {
  uint64_t to = 0, to_pitch = 0, from = 0, from_pitch = 0, width = 0, height = 1;
};
struct HostCopyArguments {
  uint64_t device = 0, pitch = 0, width = 0, height = 1;
};
// `width` elements a row.
struct FillArguments {
  uint64_t to = 0, pitch = 0;
  uint32_t value = 0, element_bytes = 1;
  uint64_t width = 0, height = 1;
};
// Events and graphs by the client's names for them.
struct EventArguments {
  uint32_t event = 0, flags = 0;
};
struct GraphArguments {
  uint32_t graph = 0, reserved = 0;
};

// BLAKE2b-256 of a module's bytes.
using ModuleContent = std::array<uint64_t, 4>;

struct Field {
  uint16_t offset = 0, bytes = 0;
  auto operator<=>(const Field&) const = default;
};

struct Callee {
  OpKind kind = OpKind::kKernel;
  ModuleContent module = {};          // of a kernel; zeros otherwise
  std::string name;                   // of a kernel or library call; empty otherwise
  std::vector<std::byte> attributes;  // of a kernel's launch, compared as a whole
  uint32_t argument_bytes = 0;        // of each call
  std::vector<Field> fields;          // ascending and disjoint; between them lies padding
  auto operator<=>(const Callee&) const = default;
};

// `parameters` as cuFuncGetParamInfo tells them: offsets count from the first parameter.
Callee KernelCallee(const ModuleContent& module, std::string name,
                    std::span<const Field> parameters, uint32_t parameter_bytes);
// REQUIRES: neither a kernel nor a library call; the kind tells all.
Callee CalleeOf(OpKind kind);

// A piece of the arguments that is compared and replaced as a whole: 1, 2, 4 or 8 bytes, at a
// multiple of its size. Only words of 8 bytes may be addresses.
struct Word {
  uint32_t offset = 0;
  uint32_t bytes = 0;
};

class Callees {
 public:
  // The callee's number, the same for equal callees. nullopt: its fields are no layout of its
  // arguments, or the table is full (limits::kRecordedCalleesMax).
  std::optional<uint32_t> Intern(const Callee& callee);

  size_t size() const { return known_.size(); }
  // REQUIRES below: number < size().
  const Callee& at(uint32_t number) const { return *known_[number].callee; }
  // Every byte of the arguments is in one word; no word reaches over the border of a field.
  std::span<const Word> words(uint32_t number) const { return known_[number].words; }

 private:
  struct Known {
    const Callee* callee;  // a key of numbers_
    std::vector<Word> words;
  };
  std::map<Callee, uint32_t> numbers_;
  std::vector<Known> known_;
};

}  // namespace replay
