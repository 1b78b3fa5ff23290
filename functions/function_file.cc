#include "functions/function_file.h"

#include <cstring>
#include <utility>

#define XXH_INLINE_ALL
#define XXH_NO_STREAM
#include <xxhash.h>

#include "ipc/calls.h"
#include "ipc/calls/limits.h"

namespace functions {
namespace {

namespace limits = ipc::limits;

constexpr char kMagic[8] = {'L', 'N', 'W', 'F', 'U', 'N', 'C', '\n'};
constexpr uint64_t kVersion = 1;
// The magic and the version stay outside of the checksum: a file of another version is to be told
// from a damaged one.
constexpr size_t kCheckedFrom = sizeof kMagic + 2 * sizeof(uint64_t);

// Grows as it is written: a function may be gigabytes, and nobody knows its size before.
class Out {
 public:
  void Raw(const void* data, size_t bytes) {
    const std::byte* const from = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), from, from + bytes);
  }
  void Number(uint64_t value) { Raw(&value, sizeof value); }
  void Text(const Bytes& bytes) {
    Number(bytes.size());
    Raw(bytes.data(), bytes.size());
  }
  Bytes Take() { return std::move(bytes_); }
  Bytes& bytes() { return bytes_; }

 private:
  Bytes bytes_;
};

// After the first read past the end nothing is read any more.
class In {
 public:
  explicit In(std::span<const std::byte> in) : in_(in) {}
  uint64_t Number(uint64_t max = UINT64_MAX) {
    uint64_t value = 0;
    Raw(&value, sizeof value);
    ok_ = ok_ && value <= max;
    return ok_ ? value : 0;
  }
  // How many elements follow, each of which takes `bytes_min` at least.
  uint64_t Count(uint64_t max, uint64_t bytes_min) {
    const uint64_t count = Number(max);
    ok_ = ok_ && count <= in_.size() / bytes_min;
    return ok_ ? count : 0;
  }
  void Raw(void* data, size_t bytes) {
    ok_ = ok_ && bytes <= in_.size();
    if (!ok_ || bytes == 0) return;
    std::memcpy(data, in_.data(), bytes);
    in_ = in_.subspan(bytes);
  }
  Bytes Text(uint64_t max) {
    const uint64_t size = Count(max, 1);
    Bytes bytes(in_.begin(), in_.begin() + static_cast<ptrdiff_t>(size));
    in_ = in_.subspan(size);
    return bytes;
  }
  void Refuse() { ok_ = false; }
  bool ok() const { return ok_; }
  bool done() const { return ok_ && in_.empty(); }

 private:
  std::span<const std::byte> in_;
  bool ok_ = true;
};

// --- writing -------------------------------------------------------------------------------------

void PutCall(const Call& call, Out* out) {
  out->Number(call.op);
  out->Text(call.body);
}

void PutPorts(const std::vector<Port>& ports, Out* out) {
  out->Number(ports.size());
  for (const Port& port : ports) {
    out->Number(port.address);
    out->Number(port.bytes);
  }
}

void PutTexts(const std::vector<Bytes>& texts, Out* out) {
  out->Number(texts.size());
  for (const Bytes& text : texts) out->Text(text);
}

// Rows are only ever appended, so a later build whose tables begin alike understands the calls.
void PutTables(Out* out) {
  for (size_t i = 0; i < ipc::kLibraries; ++i) {
    const ipc::Library library = static_cast<ipc::Library>(i);
    const size_t rows = ipc::RowsOf(library).size();
    out->Number(rows);
    out->Number(ipc::TableHash(library, rows));
  }
}

void PutMembers(const Function& function, Out* out) {
  out->Number(function.images.size());
  for (const Image& image : function.images) {
    for (const uint64_t word : image.hash) out->Number(word);
    out->Text(image.bytes);
  }
  out->Number(function.setup.size());
  for (const Call& call : function.setup) PutCall(call, out);
  out->Number(function.blocks.size());
  for (const Block& block : function.blocks) {
    out->Number(block.base);
    out->Number(block.bytes);
    out->Text(block.content);
    out->Number(block.variable);
  }
  out->Number(function.steps.size());
  for (const Step& step : function.steps) {
    out->Number(static_cast<uint64_t>(step.kind));
    out->Number(step.port);
    PutCall(step.call, out);
  }
  PutPorts(function.inputs, out);
  PutPorts(function.outputs, out);
  out->Number(function.scalars.size());
  for (const Scalar& scalar : function.scalars) {
    out->Number(scalar.step);
    out->Number(scalar.offset);
    out->Number(scalar.bytes);
  }
  out->Number(function.samples.size());
  for (const Sample& sample : function.samples) {
    PutTexts(sample.inputs, out);
    PutTexts(sample.outputs, out);
  }
}

// --- reading -------------------------------------------------------------------------------------

Call GetCall(In* in) {
  Call call;
  call.op = static_cast<uint16_t>(in->Number(UINT16_MAX));
  call.body = in->Text(limits::kMessageBytesMax);
  return call;
}

// Counts are checked against the bytes that are left before room is made: a damaged count must not
// ask for all memory.
std::vector<Port> GetPorts(In* in) {
  std::vector<Port> ports(in->Count(limits::kFunctionPortsMax, 16));
  for (Port& port : ports) {
    port.address = in->Number();
    port.bytes = in->Number(limits::kFunctionPortBytesMax);
  }
  return ports;
}

std::vector<Bytes> GetTexts(In* in) {
  std::vector<Bytes> texts(in->Count(limits::kFunctionPortsMax, 8));
  for (Bytes& text : texts) text = in->Text(limits::kFunctionPortBytesMax);
  return texts;
}

// All hashes are read, also after one that differs: the reader must stand behind them.
bool SameTables(In* in) {
  bool same = true;
  for (size_t i = 0; i < ipc::kLibraries; ++i) {
    const ipc::Library library = static_cast<ipc::Library>(i);
    const uint64_t rows = in->Number();
    const uint64_t hash = in->Number();
    same = same && rows <= ipc::RowsOf(library).size() && ipc::TableHash(library, rows) == hash;
  }
  return same;
}

// The images, memory and calls that the steps stand on. The player sees whether images load.
void GetStand(In* in, Function* function) {
  function->images.resize(in->Count(limits::kFunctionImagesMax, 40));
  for (Image& image : function->images) {
    for (uint64_t& word : image.hash) word = in->Number();
    image.bytes = in->Text(limits::kModuleBytesMax);
  }
  function->setup.resize(in->Count(limits::kFunctionCallsMax, 16));
  for (Call& call : function->setup) call = GetCall(in);
  function->blocks.resize(in->Count(limits::kFunctionBlocksMax, 32));
  for (Block& block : function->blocks) {
    block.base = in->Number();
    block.bytes = in->Number(limits::kFunctionMemoryBytesMax);
    block.content = in->Text(block.bytes);
    block.variable = static_cast<uint32_t>(in->Number(function->setup.size()));
    // An empty content means memory without one, so it is all or nothing.
    if (block.base + block.bytes < block.base) in->Refuse();
    if (!block.content.empty() && block.content.size() != block.bytes) in->Refuse();
  }
}

void GetIteration(In* in, Function* function) {
  function->steps.resize(in->Count(limits::kFunctionCallsMax, 32));
  for (Step& step : function->steps) {
    step.kind = static_cast<StepKind>(in->Number(static_cast<uint64_t>(StepKind::kDownload)));
    step.port = static_cast<uint32_t>(in->Number(limits::kFunctionPortsMax));
    step.call = GetCall(in);
  }
  function->inputs = GetPorts(in);
  function->outputs = GetPorts(in);
  function->scalars.resize(in->Count(limits::kFunctionPortsMax, 24));
  for (Scalar& scalar : function->scalars) {
    scalar.step = static_cast<uint32_t>(in->Number(UINT32_MAX));
    scalar.offset = static_cast<uint32_t>(in->Number(limits::kMessageBytesMax));
    scalar.bytes = static_cast<uint32_t>(in->Number(8));
  }
  function->samples.resize(in->Count(limits::kFunctionSamplesMax, 16));
  for (Sample& sample : function->samples) {
    sample.inputs = GetTexts(in);
    sample.outputs = GetTexts(in);
  }
}

// True when each number names an element of the function, and each text has its element's size.
// The player indexes by these numbers, and does not look again.
bool FitsTogether(const Function& function) {
  for (const Step& step : function.steps) {
    const size_t ports = step.kind == StepKind::kUpload     ? function.inputs.size()
                         : step.kind == StepKind::kDownload ? function.outputs.size()
                                                            : 1;
    if (step.port >= ports) return false;
  }
  for (const Scalar& scalar : function.scalars) {
    if (scalar.step >= function.steps.size() || (scalar.bytes != 4 && scalar.bytes != 8))
      return false;
    const Step& step = function.steps[scalar.step];
    if (step.kind != StepKind::kCall || scalar.offset + scalar.bytes > step.call.body.size())
      return false;
  }
  for (const Sample& sample : function.samples) {
    if (sample.inputs.size() != function.inputs.size() + function.scalars.size()) return false;
    if (sample.outputs.size() != function.outputs.size()) return false;
    for (size_t i = 0; i < sample.inputs.size(); ++i) {
      const uint64_t bytes = i < function.inputs.size()
                                 ? function.inputs[i].bytes
                                 : function.scalars[i - function.inputs.size()].bytes;
      if (sample.inputs[i].size() != bytes) return false;
    }
    for (size_t i = 0; i < sample.outputs.size(); ++i) {
      if (sample.outputs[i].size() != function.outputs[i].bytes) return false;
    }
  }
  return true;
}

}  // namespace

Bytes EncodeFunction(const Function& function) {
  Out out;
  out.Raw(kMagic, sizeof kMagic);
  out.Number(kVersion);
  out.Number(0);
  PutTables(&out);
  PutMembers(function, &out);
  // The checksum is known when all that it covers is written.
  Bytes bytes = out.Take();
  const uint64_t sum = XXH3_64bits(bytes.data() + kCheckedFrom, bytes.size() - kCheckedFrom);
  std::memcpy(bytes.data() + kCheckedFrom - sizeof sum, &sum, sizeof sum);
  return bytes;
}

bool DecodeFunctionUntrusted(std::span<const std::byte> file, Function* function,
                             std::string* why) {
  char magic[sizeof kMagic] = {};
  In in(file);
  in.Raw(magic, sizeof magic);
  const uint64_t version = in.Number();
  const uint64_t sum = in.Number();
  if (!in.ok() || std::memcmp(magic, kMagic, sizeof magic) != 0) {
    *why = "is no recorded function; record it again";
    return false;
  }
  if (version != kVersion) {
    *why = "was recorded by another version of Laneway; record it again";
    return false;
  }
  if (XXH3_64bits(file.data() + kCheckedFrom, file.size() - kCheckedFrom) != sum) {
    *why = "is cut short or damaged; record it again";
    return false;
  }
  if (!SameTables(&in)) {
    *why = "was recorded by another version of Laneway; record it again";
    return false;
  }
  // `function` changes only when the whole file makes sense.
  Function read;
  GetStand(&in, &read);
  GetIteration(&in, &read);
  if (!in.done() || !FitsTogether(read)) {
    *why = "is damaged; record it again";
    return false;
  }
  *function = std::move(read);
  return true;
}

}  // namespace functions
