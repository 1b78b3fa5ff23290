#include "serve/llm/format/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "serve/llm/format/cursor.h"
#include "serve/llm/format/refusal.h"

namespace serve::llm {

// A tensor as the table has it, with an offset that is not checked yet.
struct GgufRow {
  Tensor tensor;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

namespace {

constexpr uint32_t kGgufMagic = 0x46554747;  // "GGUF"
constexpr uint64_t kAlignmentIfUnsaid = 32;
constexpr uint64_t kTextBytesMin = sizeof(uint64_t);
// The least that a key and a tensor take: counts beyond the file's size are refused before room is
// made for them.
constexpr uint64_t kKeyBytesMin = kTextBytesMin + sizeof(uint32_t) + 1;
constexpr uint64_t kTensorBytesMin = kTextBytesMin + 4 * sizeof(uint32_t) + sizeof(uint64_t);

// 0: not a type whose values have one size.
uint64_t BytesOfType(GgufType type) {
  switch (type) {
    case GgufType::kUint8:
    case GgufType::kInt8:
    case GgufType::kBool:
      return 1;
    case GgufType::kUint16:
    case GgufType::kInt16:
      return 2;
    case GgufType::kUint32:
    case GgufType::kInt32:
    case GgufType::kFloat32:
      return 4;
    case GgufType::kUint64:
    case GgufType::kInt64:
    case GgufType::kFloat64:
      return 8;
    case GgufType::kText:
    case GgufType::kArray:
      return 0;
  }
  return 0;
}

// REQUIRES: a number or a truth value.
GgufValue ReadScalar(GgufType type, Cursor* in) {
  switch (type) {
    case GgufType::kUint8:
      return uint64_t{in->Number<uint8_t>()};
    case GgufType::kInt8:
      return int64_t{in->Number<int8_t>()};
    case GgufType::kUint16:
      return uint64_t{in->Number<uint16_t>()};
    case GgufType::kInt16:
      return int64_t{in->Number<int16_t>()};
    case GgufType::kUint32:
      return uint64_t{in->Number<uint32_t>()};
    case GgufType::kInt32:
      return int64_t{in->Number<int32_t>()};
    case GgufType::kFloat32:
      return double{in->Number<float>()};
    case GgufType::kBool:
      return in->Number<uint8_t>() != 0;
    case GgufType::kUint64:
      return in->Number<uint64_t>();
    case GgufType::kInt64:
      return in->Number<int64_t>();
    case GgufType::kFloat64:
      return in->Number<double>();
    case GgufType::kText:
    case GgufType::kArray:
      break;
  }
  return uint64_t{0};
}

// Texts have no common size, so that all lie in the file is known only when each was passed.
GgufArray ReadArrayOfTexts(uint64_t count, Cursor* in) {
  const Cursor before = *in;
  for (uint64_t i = 0; i < count && in->ok(); ++i) in->Text();
  Cursor again = before;
  return {GgufType::kText, count, again.Bytes(in->ok() ? in->at() - before.at() : 0)};
}

absl::StatusOr<GgufValue> ReadArray(Cursor* in) {
  const uint32_t number = in->Number<uint32_t>();
  const uint64_t count = in->Number<uint64_t>();
  if (!in->ok()) return CutShort("metadata");
  const GgufType type = static_cast<GgufType>(number);
  if (type == GgufType::kText) {
    const GgufArray array = ReadArrayOfTexts(count, in);
    if (!in->ok()) return CutShort("metadata");
    return array;
  }
  const uint64_t bytes = BytesOfType(type);
  if (bytes == 0) return Damaged(absl::StrCat("it has an array of values of type ", number));
  // The comparison bounds `count`, so the product cannot overflow.
  if (count > in->left() / bytes) return CutShort("metadata");
  return GgufArray{type, count, in->Bytes(count * bytes)};
}

absl::StatusOr<GgufValue> ReadValue(Cursor* in) {
  const uint32_t number = in->Number<uint32_t>();
  if (!in->ok()) return CutShort("metadata");
  const GgufType type = static_cast<GgufType>(number);
  if (type == GgufType::kArray) return ReadArray(in);
  GgufValue value;
  if (type == GgufType::kText) {
    value = in->Text();
  } else if (BytesOfType(type) != 0) {
    value = ReadScalar(type, in);
  } else {
    return Damaged(absl::StrCat("it has a value of type ", number));
  }
  if (!in->ok()) return CutShort("metadata");
  return value;
}

// Rows are checked by the first side alone: further sides only repeat rows, and a block never spans
// two of them.
absl::Status CheckShape(const GgufRow& row) {
  const Tensor& tensor = row.tensor;
  const std::string name = Quoted(tensor.name);
  if (std::find(tensor.shape.begin(), tensor.shape.end(), 0u) != tensor.shape.end())
    return Damaged(absl::StrCat("tensor ", name, " has a side of 0"));
  const std::optional<uint64_t> elements = ElementsOf(tensor.shape);
  if (!elements.has_value())
    return Damaged(absl::StrCat("the size of tensor ", name, " overflows"));
  if (tensor.shape[0] % tensor.type->block_elements != 0)
    return Damaged(absl::StrCat("rows of tensor ", name, " are no whole blocks of ",
                                std::string(tensor.type->name)));
  return absl::OkStatus();
}

absl::StatusOr<GgufRow> ReadRow(Cursor* in) {
  GgufRow row;
  const std::string_view whole_name = in->Text();
  const uint32_t rank = in->Number<uint32_t>();
  if (!in->ok()) return CutShort("table of tensors");
  const std::string name = Quoted(whole_name);
  if (whole_name.empty() || whole_name.size() > kGgufTensorNameBytesMax)
    return Damaged("a tensor's name is empty or too long");
  row.tensor.name = std::string(whole_name);
  if (rank == 0 || rank > kGgufRankMax)
    return Damaged(absl::StrCat("tensor ", name, " has ", rank, " sides"));
  for (uint32_t i = 0; i < rank; ++i) row.tensor.shape.push_back(in->Number<uint64_t>());
  const uint32_t type = in->Number<uint32_t>();
  row.offset = in->Number<uint64_t>();
  if (!in->ok()) return CutShort("table of tensors");
  row.tensor.type = FindTensorType(type);
  if (row.tensor.type == nullptr)
    return absl::UnimplementedError(
        absl::StrCat("has tensor ", name, " of type ", type,
                     ", which is not known; use a file of Q4_K or Q8_0"));
  if (const absl::Status fine = CheckShape(row); !fine.ok()) return fine;
  row.bytes =
      row.tensor.Elements() / row.tensor.type->block_elements * row.tensor.type->block_bytes;
  return row;
}

// `rows` by offset. The tensors' bytes are disjoint and within `data`.
absl::Status CheckPlaces(const std::vector<const GgufRow*>& rows, std::span<const std::byte> data,
                         uint64_t alignment) {
  const GgufRow* before = nullptr;
  for (const GgufRow* const row : rows) {
    const std::string name = Quoted(row->tensor.name);
    if (row->offset % alignment != 0)
      return Damaged(absl::StrCat("tensor ", name, " does not begin at a multiple of ", alignment));
    if (row->offset > data.size() || row->bytes > data.size() - row->offset)
      return CutShort(absl::StrCat("tensor ", name));
    if (before != nullptr && row->offset < before->offset + before->bytes)
      return Damaged(
          absl::StrCat("tensors ", Quoted(before->tensor.name), " and ", name, " overlap"));
    // Rows come by offset, so only neighbours can overlap first.
    before = row;
  }
  return absl::OkStatus();
}

}  // namespace

// Builds a Gguf step by step; the steps are in the order of the file.
class GgufDecoder {
 public:
  explicit GgufDecoder(std::span<const std::byte> file) : file_(file), in_(file) {}

  absl::StatusOr<Gguf> Decode() {
    for (const auto step : {&GgufDecoder::ReadHeader, &GgufDecoder::ReadKeys,
                            &GgufDecoder::ReadTable, &GgufDecoder::PlaceTensors}) {
      if (absl::Status fine = (this->*step)(); !fine.ok()) return fine;
    }
    return std::move(gguf_);
  }

 private:
  absl::Status ReadHeader();
  absl::Status ReadKeys();
  absl::Status ReadTable();
  absl::Status PlaceTensors();
  absl::StatusOr<uint64_t> Alignment() const;

  const std::span<const std::byte> file_;
  Cursor in_;
  uint64_t tensors_ = 0;
  uint64_t keys_ = 0;
  absl::flat_hash_set<std::string> names_;
  std::vector<GgufRow> rows_;
  Gguf gguf_;
};

absl::Status GgufDecoder::ReadHeader() {
  const uint32_t magic = in_.Number<uint32_t>();
  gguf_.version_ = in_.Number<uint32_t>();
  if (!in_.ok() || magic != kGgufMagic)
    return absl::InvalidArgumentError("is no GGUF file; name a model's .gguf file");
  // A big-endian file has the same magic, as the magic is four letters, and a reversed version.
  if (__builtin_bswap32(gguf_.version_) <= 3)
    return absl::UnimplementedError("is big-endian; use the little-endian file of the model");
  if (gguf_.version_ != 2 && gguf_.version_ != 3)
    return absl::UnimplementedError(absl::StrCat("is GGUF version ", gguf_.version_,
                                                 ", and versions 2 and 3 are read; convert it"));
  tensors_ = in_.Number<uint64_t>();
  keys_ = in_.Number<uint64_t>();
  if (!in_.ok()) return CutShort("header");
  if (tensors_ > kGgufTensorsMax || keys_ > kGgufKeysMax)
    return Damaged(absl::StrCat("it claims ", tensors_, " tensors and ", keys_, " keys"));
  if (tensors_ * kTensorBytesMin + keys_ * kKeyBytesMin > in_.left()) return CutShort("header");
  return absl::OkStatus();
}

absl::Status GgufDecoder::ReadKeys() {
  for (uint64_t i = 0; i < keys_; ++i) {
    const std::string_view key = in_.Text();
    if (!in_.ok()) return CutShort("metadata");
    if (key.empty() || key.size() > kGgufKeyBytesMax)
      return Damaged("a key of its metadata is empty or too long");
    absl::StatusOr<GgufValue> value = ReadValue(&in_);
    if (!value.ok()) return value.status();
    if (!gguf_.values_.emplace(key, *std::move(value)).second)
      return Damaged(absl::StrCat("it has the key ", Quoted(key), " twice"));
  }
  return absl::OkStatus();
}

absl::Status GgufDecoder::ReadTable() {
  rows_.reserve(tensors_);
  for (uint64_t i = 0; i < tensors_; ++i) {
    absl::StatusOr<GgufRow> row = ReadRow(&in_);
    if (!row.ok()) return row.status();
    // Tensors are placed later, where a second one of the name would be dropped silently.
    if (!names_.insert(row->tensor.name).second)
      return Damaged(absl::StrCat("it has tensor ", Quoted(row->tensor.name), " twice"));
    rows_.push_back(*std::move(row));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> GgufDecoder::Alignment() const {
  // An alignment that is there but is no number must not pass as the usual one.
  if (!gguf_.Has("general.alignment")) return kAlignmentIfUnsaid;
  const uint64_t alignment = gguf_.Unsigned("general.alignment").value_or(0);
  if (!std::has_single_bit(alignment) || alignment < kGgufAlignmentMin ||
      alignment > kGgufAlignmentMax)
    return Damaged("its alignment is no power of two from 8 to 65536");
  return alignment;
}

absl::Status GgufDecoder::PlaceTensors() {
  const absl::StatusOr<uint64_t> alignment = Alignment();
  if (!alignment.ok()) return alignment.status();
  const size_t padding = (*alignment - in_.at() % *alignment) % *alignment;
  // A file without tensors may end before the padding.
  const std::span<const std::byte> data = file_.subspan(in_.at() + std::min(padding, in_.left()));
  std::vector<const GgufRow*> by_offset;
  for (const GgufRow& row : rows_) by_offset.push_back(&row);
  std::sort(by_offset.begin(), by_offset.end(),
            [](const GgufRow* a, const GgufRow* b) { return a->offset < b->offset; });
  if (const absl::Status fine = CheckPlaces(by_offset, data, *alignment); !fine.ok()) return fine;
  for (GgufRow& row : rows_) {
    row.tensor.bytes = data.subspan(row.offset, row.bytes);
    gguf_.tensors_.Add(std::move(row.tensor));
  }
  return absl::OkStatus();
}

absl::StatusOr<Gguf> DecodeGgufUntrusted(std::span<const std::byte> file) {
  return GgufDecoder(file).Decode();
}

}  // namespace serve::llm
