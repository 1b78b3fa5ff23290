#include "replay/op_stream_codec.h"

#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "ipc/calls/limits.h"

namespace replay {
namespace {

constexpr char kOpsMagic[8] = {'L', 'N', 'W', 'R', 'E', 'C', '1', '\n'};

class ByteWriter {
 public:
  void Raw(const void* data, size_t bytes) {
    const std::byte* const from = static_cast<const std::byte*>(data);
    out_.insert(out_.end(), from, from + bytes);
  }
  template <class T>
  void Put(T value) {
    Raw(&value, sizeof value);
  }
  std::vector<std::byte> Take() { return std::move(out_); }

 private:
  std::vector<std::byte> out_;
};

// After the first read past the end, nothing is read any more and ok() is false.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> in) : in_(in) {}
  bool Raw(void* data, size_t bytes) {
    ok_ = ok_ && bytes <= in_.size();
    if (!ok_) return false;
    if (bytes != 0) std::memcpy(data, in_.data(), bytes);
    in_ = in_.subspan(bytes);
    return true;
  }
  template <class T>
  T Get() {
    T value = {};
    Raw(&value, sizeof value);
    return value;
  }
  bool ok() const { return ok_; }
  bool done() const { return ok_ && in_.empty(); }

 private:
  std::span<const std::byte> in_;
  bool ok_ = true;
};

void PutCallee(const Callee& callee, ByteWriter* out) {
  out->Put(static_cast<uint8_t>(callee.kind));
  out->Raw(callee.module.data(), sizeof callee.module);
  out->Put(callee.argument_bytes);
  out->Put(static_cast<uint16_t>(callee.name.size()));
  out->Raw(callee.name.data(), callee.name.size());
  out->Put(static_cast<uint16_t>(callee.attributes.size()));
  out->Raw(callee.attributes.data(), callee.attributes.size());
  out->Put(static_cast<uint16_t>(callee.fields.size()));
  for (const Field& field : callee.fields) {
    out->Put(field.offset);
    out->Put(field.bytes);
  }
}

std::optional<Callee> GetCallee(ByteReader* in) {
  Callee callee;
  callee.kind = static_cast<OpKind>(in->Get<uint8_t>());
  in->Raw(callee.module.data(), sizeof callee.module);
  callee.argument_bytes = in->Get<uint32_t>();
  callee.name.resize(in->Get<uint16_t>());
  in->Raw(callee.name.data(), callee.name.size());
  callee.attributes.resize(in->Get<uint16_t>());
  in->Raw(callee.attributes.data(), callee.attributes.size());
  callee.fields.resize(in->Get<uint16_t>());
  for (Field& field : callee.fields) {
    field.offset = in->Get<uint16_t>();
    field.bytes = in->Get<uint16_t>();
  }
  if (!in->ok()) return std::nullopt;
  return callee;
}

// What is no address is written as a number, with the part that says so: the decoder cannot know
// where the encoder's slot was.
void PutArguments(std::span<const std::byte> arguments, std::span<const Word> words,
                  const Slot& slot, ByteWriter* out) {
  for (const Word& word : words) {
    const std::byte* const at = arguments.data() + word.offset;
    if (word.bytes < sizeof(uint64_t)) {
      out->Raw(at, word.bytes);
      continue;
    }
    uint64_t number = 0;
    std::memcpy(&number, at, sizeof number);
    const SlotAddress address = slot.Of(number);
    out->Put(static_cast<uint8_t>(address.part));
    out->Put(address.value);
  }
}

// REQUIRES: `arguments` are as many bytes as the words cover.
bool GetArguments(std::span<const Word> words, const Slot& slot, ByteReader* in,
                  std::span<std::byte> arguments) {
  for (const Word& word : words) {
    std::byte* const at = arguments.data() + word.offset;
    if (word.bytes < sizeof(uint64_t)) {
      if (!in->Raw(at, word.bytes)) return false;
      continue;
    }
    SlotAddress address;
    address.part = static_cast<SlotPart>(in->Get<uint8_t>());
    address.value = in->Get<uint64_t>();
    uint64_t number = 0;
    if (!in->ok() || !slot.NumberOf(address, &number)) return false;
    std::memcpy(at, &number, sizeof number);
  }
  return true;
}

// Reads once from front to back. What is refused leaves callees in the table: they are well formed,
// and nothing names them.
class OpsDecoder {
 public:
  OpsDecoder(std::span<const std::byte> bytes, const Slot& slot, Callees* callees)
      : in_(bytes), slot_(slot), callees_(callees) {}

  std::optional<OpStream> Run() {
    char magic[sizeof kOpsMagic] = {};
    in_.Raw(magic, sizeof magic);
    const uint32_t callees = in_.Get<uint32_t>(), ops = in_.Get<uint32_t>();
    if (!in_.ok() || std::memcmp(magic, kOpsMagic, sizeof magic) != 0 ||
        callees > ipc::limits::kRecordedCalleesMax || ops > ipc::limits::kRecordedOpsMax) {
      return std::nullopt;
    }
    for (uint32_t i = 0; i < callees; ++i) {
      std::optional<Callee> callee = GetCallee(&in_);
      if (!callee.has_value()) return std::nullopt;
      read_.push_back(*std::move(callee));
    }
    for (uint32_t i = 0; i < ops; ++i) {
      if (!ReadOp()) return std::nullopt;
    }
    if (!in_.done() || numbers_.size() != read_.size()) return std::nullopt;
    return std::move(ops_);
  }

 private:
  // The next callee comes to its first operation. What no operation uses is not worth its memory,
  // as a few bytes tell of many words.
  bool Use() {
    const std::optional<uint32_t> number = callees_->Intern(read_[numbers_.size()]);
    if (!number.has_value() || !seen_.insert(*number).second) return false;
    numbers_.push_back(*number);
    return true;
  }

  bool ReadOp() {
    const uint16_t callee = in_.Get<uint16_t>();
    OpKey key;
    key.stream = in_.Get<uint32_t>();
    const uint8_t waited = in_.Get<uint8_t>();
    if (!in_.ok() || waited > 1 || callee > numbers_.size() || callee >= read_.size()) return false;
    if (callee == numbers_.size() && !Use()) return false;
    key.waited = waited != 0;
    key.callee = numbers_[callee];
    arguments_.resize(callees_->at(key.callee).argument_bytes);
    if (!GetArguments(callees_->words(key.callee), slot_, &in_, arguments_)) return false;
    return ops_.Add({key, arguments_});
  }

  ByteReader in_;
  const Slot slot_;
  Callees* const callees_;
  std::vector<Callee> read_;
  std::vector<uint32_t> numbers_;     // in `callees_`, of those of read_ that an operation has used
  std::set<uint32_t> seen_;           // the same
  std::vector<std::byte> arguments_;  // of the operation under way
  OpStream ops_;
};

}  // namespace

std::vector<std::byte> EncodeOps(const OpStream& ops, const Callees& callees, const Slot& slot) {
  std::map<uint32_t, uint16_t> numbers;
  std::vector<uint32_t> order;
  for (size_t i = 0; i < ops.size(); ++i) {
    const uint16_t next = static_cast<uint16_t>(order.size());
    if (numbers.emplace(ops.key(i).callee, next).second) order.push_back(ops.key(i).callee);
  }
  ByteWriter out;
  out.Raw(kOpsMagic, sizeof kOpsMagic);
  out.Put(static_cast<uint32_t>(order.size()));
  out.Put(static_cast<uint32_t>(ops.size()));
  for (const uint32_t callee : order) PutCallee(callees.at(callee), &out);
  for (size_t i = 0; i < ops.size(); ++i) {
    const OpView op = ops.at(i);
    out.Put(numbers.at(op.key.callee));
    out.Put(op.key.stream);
    out.Put(static_cast<uint8_t>(op.key.waited));
    PutArguments(op.arguments, callees.words(op.key.callee), slot, &out);
  }
  return out.Take();
}

std::optional<OpStream> DecodeOpsUntrusted(std::span<const std::byte> bytes, const Slot& slot,
                                           Callees* callees) {
  return OpsDecoder(bytes, slot, callees).Run();
}

}  // namespace replay
