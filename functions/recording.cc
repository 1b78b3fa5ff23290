#include "functions/recording.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "functions/body_layout.h"
#include "functions/relocation.h"
#include "functions/request_borders.h"
#include "ipc/calls/limits.h"
#include "ipc/codec.h"

namespace functions {
namespace {

using ipc::RoleKind;

// A word of parameters is an address when it lies in a session's slot. No other numbers of programs
// are so large and so close together.
bool IsSlotAddress(uint64_t word) {
  return word >= ipc::limits::kSlotBase && word < ipc::limits::kSlotsEnd;
}

uint64_t WordAt(const Bytes& bytes, size_t at) {
  uint64_t word = 0;
  std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
  return word;
}

bool SameBytes(const Bytes& a, const Bytes& b, size_t begin, size_t end) {
  return std::equal(a.begin() + static_cast<ptrdiff_t>(begin),
                    a.begin() + static_cast<ptrdiff_t>(end),
                    b.begin() + static_cast<ptrdiff_t>(begin));
}

std::string NameOf(const Call& call) {
  return std::string(ipc::RowOf(static_cast<ipc::Op>(call.op)).name);
}

// --- comparison ----------------------------------------------------------------------------------

// What differs between a call and the same call of another iteration.
class CallComparison {
 public:
  CallComparison(const Call& first, const Call& other, uint32_t step, std::set<Scalar>* scalars)
      : op_(static_cast<ipc::Op>(first.op)),
        first_(first.body),
        other_(other.body),
        step_(step),
        scalars_(*scalars) {}

  // False: they differ in more than addresses and parameters of a kernel.
  bool Run() {
    if (first_.size() != other_.size()) return false;
    size_t at = 0;
    for (const BodyField& field : FixedFieldsOf(op_)) {
      if (!SameField(field)) return false;
      at = field.offset + field.bytes;
    }
    const std::optional<Part> parameters =
        CarriesKernel(op_) ? KernelParametersOf(op_, first_) : std::nullopt;
    const size_t end = parameters.has_value() ? parameters->offset : first_.size();
    if (!SameBytes(first_, other_, at, end)) return false;
    return !parameters.has_value() || CompareParameters(*parameters);
  }

 private:
  bool BothAddresses(size_t at) const {
    return IsSlotAddress(WordAt(first_, at)) && IsSlotAddress(WordAt(other_, at));
  }
  bool SameField(const BodyField& field) const {
    if (SameBytes(first_, other_, field.offset, field.offset + field.bytes)) return true;
    switch (field.role) {
      case RoleKind::kStream:
        return true;  // all steps run in one order
      case RoleKind::kDevicePtr:
        return BothAddresses(field.offset);
      case RoleKind::kScalar:
        return first_[field.offset] == other_[field.offset] &&
               static_cast<ipc::ScalarTag>(first_[field.offset]) == ipc::ScalarTag::kDevice &&
               BothAddresses(field.offset + 1);
      default:
        return false;
    }
  }
  bool CompareParameters(const Part& part) {
    for (size_t at = 0; at < part.bytes; at += sizeof(uint64_t)) {
      const size_t bytes = std::min(sizeof(uint64_t), part.bytes - at);
      if (!CompareWord(part.offset + at, bytes)) return false;
    }
    return true;
  }
  // By halves: two parameters of 4 bytes may share a word, and only one of them may differ.
  bool CompareWord(size_t at, size_t bytes) {
    if (SameBytes(first_, other_, at, at + bytes)) return true;
    if (bytes == sizeof(uint64_t)) {
      const bool first = IsSlotAddress(WordAt(first_, at));
      if (first != IsSlotAddress(WordAt(other_, at))) return false;
      if (first) return true;
    }
    for (size_t half = 0; half < bytes; half += sizeof(uint32_t)) {
      const size_t end = std::min(at + half + sizeof(uint32_t), at + bytes);
      if (SameBytes(first_, other_, at + half, end)) continue;
      if (end - (at + half) != sizeof(uint32_t)) return false;
      scalars_.insert({step_, static_cast<uint32_t>(at + half), sizeof(uint32_t)});
    }
    return true;
  }

  const ipc::Op op_;
  const Bytes& first_;
  const Bytes& other_;
  const uint32_t step_;
  std::set<Scalar>& scalars_;
};

bool CompareIterations(const RecordedIteration& first, const RecordedIteration& other,
                       std::set<Scalar>* scalars, std::string* why) {
  if (first.calls.size() != other.calls.size()) {
    *why = "its iterations have different numbers of calls";
    return false;
  }
  for (size_t i = 0; i < first.calls.size(); ++i) {
    const RecordedCall& a = first.calls[i];
    const RecordedCall& b = other.calls[i];
    if (a.kind != b.kind || a.call.op != b.call.op) {
      *why = "its iterations make different calls";
      return false;
    }
    if (a.kind != StepKind::kCall && a.content.size() != b.content.size()) {
      *why = a.kind == StepKind::kUpload ? "it uploads inputs of different sizes"
                                         : "it reads back outputs of different sizes";
      return false;
    }
    if (a.kind == StepKind::kCall &&
        !CallComparison(a.call, b.call, static_cast<uint32_t>(i), scalars).Run()) {
      *why = "host code gives " + NameOf(a.call) +
             " other arguments in each iteration, and only "
             "parameters of kernels may differ";
      return false;
    }
  }
  return true;
}

// Two halves of one word are one scalar.
std::vector<Scalar> Joined(const std::set<Scalar>& halves, const RecordedIteration& first) {
  std::vector<Scalar> joined;
  for (const Scalar& half : halves) {
    const Call& call = first.calls[half.step].call;
    const std::optional<Part> part = KernelParametersOf(static_cast<ipc::Op>(call.op), call.body);
    const bool second = part.has_value() && (half.offset - part->offset) % sizeof(uint64_t) != 0;
    if (second && !joined.empty() && joined.back().step == half.step &&
        joined.back().offset + sizeof(uint32_t) == half.offset && joined.back().bytes == 4) {
      joined.back().bytes = sizeof(uint64_t);
    } else {
      joined.push_back(half);
    }
  }
  return joined;
}

// --- memory --------------------------------------------------------------------------------------

// All ranges that the iteration may touch, overlapping ones as one block.
std::vector<Block> BlocksOf(std::vector<Block> live, const std::vector<Range>& allocated) {
  for (const Range& range : allocated) live.push_back({range.base, range.bytes, {}});
  std::sort(live.begin(), live.end(), [](const Block& a, const Block& b) {
    return a.base < b.base || (a.base == b.base && a.bytes > b.bytes);
  });
  std::vector<Block> blocks;
  for (Block& next : live) {
    if (blocks.empty() || next.base >= blocks.back().base + blocks.back().bytes) {
      blocks.push_back(std::move(next));
      continue;
    }
    Block& last = blocks.back();
    const uint64_t offset = next.base - last.base;
    last.bytes = std::max(last.bytes, offset + next.bytes);
    if (last.content.empty() && next.content.empty()) continue;
    last.content.resize(last.bytes);
    std::copy(next.content.begin(), next.content.end(),
              last.content.begin() + static_cast<ptrdiff_t>(offset));
  }
  return blocks;
}

// Blocks that an address of a step, or a word of a block that is used, points into.
class UsedBlocks {
 public:
  explicit UsedBlocks(std::vector<Block> blocks)
      : blocks_(std::move(blocks)), used_(blocks_.size()) {}

  // An address just behind a block is none of it: loops compare with such ends, and read nothing.
  void Use(uint64_t address) {
    std::vector<Block>::iterator block =
        std::upper_bound(blocks_.begin(), blocks_.end(), address,
                         [](uint64_t at, const Block& one) { return at < one.base; });
    if (block == blocks_.begin()) return;
    --block;
    const size_t index = static_cast<size_t>(block - blocks_.begin());
    if (address - block->base >= block->bytes || used_[index]) return;
    used_[index] = true;
    open_.push_back(index);
  }
  void UseWords(std::span<const std::byte> words) {
    for (size_t at = 0; at + sizeof(uint64_t) <= words.size(); at += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, words.data() + at, sizeof word);
      if (IsSlotAddress(word)) Use(word);
    }
  }
  std::vector<Block> Take() {
    while (!open_.empty()) {
      const size_t index = open_.back();
      open_.pop_back();
      UseWords(blocks_[index].content);
    }
    std::vector<Block> taken;
    for (size_t i = 0; i < blocks_.size(); ++i) {
      if (used_[i]) taken.push_back(std::move(blocks_[i]));
    }
    return taken;
  }

 private:
  std::vector<Block> blocks_;  // ascending
  std::vector<bool> used_;
  std::vector<size_t> open_;  // used, and not looked into
};

// Parameters of kernels are not typed: each word that looks like an address counts.
void UseAddressesOf(const Call& call, UsedBlocks* used) {
  const ipc::Op op = static_cast<ipc::Op>(call.op);
  for (const BodyField& field : FixedFieldsOf(op)) {
    if (field.role == RoleKind::kDevicePtr || field.role == RoleKind::kResult)
      used->Use(WordAt(call.body, field.offset));
    if (field.role == RoleKind::kScalar) used->Use(WordAt(call.body, field.offset + 1));
  }
  if (!CarriesKernel(op)) return;
  if (const std::optional<Part> part = KernelParametersOf(op, call.body); part.has_value())
    used->UseWords(std::span(call.body).subspan(part->offset, part->bytes));
}

// --- the whole -----------------------------------------------------------------------------------

bool HasPorts(const RecordedIteration& iteration, std::string* why) {
  bool uploads = false, downloads = false;
  for (const RecordedCall& call : iteration.calls) {
    uploads = uploads || call.kind == StepKind::kUpload;
    downloads = downloads || call.kind == StepKind::kDownload;
  }
  if (!uploads) *why = "no iteration that repeats uploads an input";
  if (uploads && !downloads) *why = "no iteration that repeats reads an output back";
  return uploads && downloads;
}

void AddSteps(const RecordedIteration& iteration, Function* function) {
  for (const RecordedCall& call : iteration.calls) {
    Step step;
    step.kind = call.kind;
    if (call.kind == StepKind::kCall) {
      step.call = call.call;
    } else {
      std::vector<Port>& ports =
          call.kind == StepKind::kUpload ? function->inputs : function->outputs;
      step.port = static_cast<uint32_t>(ports.size());
      ports.push_back({call.address, call.content.size()});
    }
    function->steps.push_back(std::move(step));
  }
}

Sample SampleOf(const RecordedIteration& iteration, const std::vector<Scalar>& scalars) {
  Sample sample;
  for (const RecordedCall& call : iteration.calls) {
    if (call.kind == StepKind::kUpload) sample.inputs.push_back(call.content);
    if (call.kind == StepKind::kDownload) sample.outputs.push_back(call.content);
  }
  for (const Scalar& scalar : scalars) {
    const Bytes& body = iteration.calls[scalar.step].call.body;
    const Bytes::const_iterator begin = body.begin() + scalar.offset;
    sample.inputs.push_back(Bytes(begin, begin + scalar.bytes));
  }
  return sample;
}

bool IsBounded(const Function& function, std::string* why) {
  uint64_t memory = 0;
  for (const Block& block : function.blocks) memory += block.bytes;
  bool ports = function.inputs.size() + function.scalars.size() <= ipc::limits::kFunctionPortsMax &&
               function.outputs.size() <= ipc::limits::kFunctionPortsMax;
  for (const std::vector<Port>* const side : {&function.inputs, &function.outputs}) {
    for (const Port& port : *side)
      ports = ports && port.bytes <= ipc::limits::kFunctionPortBytesMax;
  }
  if (!ports) *why = "it has too many inputs or outputs, or too large ones";
  if (memory > ipc::limits::kFunctionMemoryBytesMax) *why = "it needs too much device memory";
  if (function.steps.size() > ipc::limits::kFunctionCallsMax ||
      function.setup.size() > ipc::limits::kFunctionCallsMax ||
      function.blocks.size() > ipc::limits::kFunctionBlocksMax ||
      function.images.size() > ipc::limits::kFunctionImagesMax) {
    *why = "its iterations have too many calls";
  }
  return why->empty();
}

}  // namespace

bool MakeFunction(Recording recording, Function* function, std::string* why) {
  why->clear();
  recording.iterations = CutAtRequests(std::move(recording.iterations));
  // What is uploaded after a read-back may have been computed from it, and a function has no host
  // code to compute it again.
  if (recording.iterations.empty()) {
    *why = "host code computes in the middle of an iteration: it uploads after it has read back";
    return false;
  }
  const RecordedIteration& first = recording.iterations.front();
  if (!HasPorts(first, why)) return false;
  std::set<Scalar> halves;
  for (const RecordedIteration& other : recording.iterations) {
    if (!CompareIterations(first, other, &halves, why)) return false;
  }
  Function made;
  // Steps and scalars are those of the first: its addresses go with the copied memory.
  made.scalars = Joined(halves, first);
  made.images = std::move(recording.images);
  made.setup = std::move(recording.setup);
  AddSteps(first, &made);
  for (const RecordedIteration& one : recording.iterations)
    made.samples.push_back(SampleOf(one, made.scalars));
  // A kernel finds its module's variables without an address.
  const std::vector<Block>::iterator variables =
      std::stable_partition(recording.blocks.begin(), recording.blocks.end(),
                            [](const Block& block) { return block.variable == 0; });
  made.blocks.assign(std::make_move_iterator(variables),
                     std::make_move_iterator(recording.blocks.end()));
  recording.blocks.erase(variables, recording.blocks.end());
  UsedBlocks used(BlocksOf(std::move(recording.blocks), recording.allocated));
  for (const Block& variable : made.blocks) used.UseWords(variable.content);
  for (const Call& call : made.setup) UseAddressesOf(call, &used);
  for (const Step& step : made.steps) {
    if (step.kind == StepKind::kCall) UseAddressesOf(step.call, &used);
  }
  for (const Port& port : made.inputs) used.Use(port.address);
  for (const Port& port : made.outputs) used.Use(port.address);
  for (Block& block : used.Take()) made.blocks.push_back(std::move(block));
  if (!IsBounded(made, why)) return false;
  *function = std::move(made);
  return true;
}

}  // namespace functions
