#include "serve/llm/format/safetensors.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "serve/llm/format/cursor.h"
#include "serve/llm/format/refusal.h"
#include "serve/llm/format/safetensors_header.h"

namespace serve::llm {
namespace {

// Types that are known by size and are not read: numbers that GGUF does not have.
constexpr uint32_t kNotOfGguf = UINT32_MAX;
constexpr TensorType kOtherTypes[] = {
    {kNotOfGguf, "BOOL", 1, 1},    {kNotOfGguf, "U8", 1, 1},      {kNotOfGguf, "U16", 1, 2},
    {kNotOfGguf, "U32", 1, 4},     {kNotOfGguf, "U64", 1, 8},     {kNotOfGguf, "F8_E4M3", 1, 1},
    {kNotOfGguf, "F8_E5M2", 1, 1}, {kNotOfGguf, "F8_E8M0", 1, 1}, {kNotOfGguf, "F6_E2M3", 4, 3},
    {kNotOfGguf, "F6_E3M2", 4, 3}, {kNotOfGguf, "F4", 2, 1},      {kNotOfGguf, "C64", 1, 8},
};
// Types that GGUF has, too, under the same names.
constexpr uint32_t kTypesOfBoth[] = {0, 1, 30, 28, 24, 25, 26, 27};

absl::StatusOr<Tensor> TensorOf(const SafetensorsRow& row, std::span<const std::byte> data) {
  const std::string name = Quoted(row.name);
  Tensor tensor{row.name, FindSafetensorsType(row.type), {}, {}};
  if (tensor.type == nullptr)
    return absl::UnimplementedError(absl::StrCat("has tensor ", name, " of type ", Quoted(row.type),
                                                 ", which is not known; convert it to BF16"));
  tensor.shape.assign(row.shape.rbegin(), row.shape.rend());
  const std::optional<uint64_t> elements = ElementsOf(tensor.shape);
  if (!elements.has_value())
    return Damaged(absl::StrCat("the size of tensor ", name, " overflows"));
  const uint64_t begin = row.offsets[0], end = row.offsets[1];
  if (begin > end) return Damaged(absl::StrCat("tensor ", name, " ends before it begins"));
  if (end > data.size()) return CutShort(absl::StrCat("tensor ", name));
  if (*elements % tensor.type->block_elements != 0 ||
      *elements / tensor.type->block_elements * tensor.type->block_bytes != end - begin)
    return Damaged(absl::StrCat("tensor ", name, " has ", end - begin,
                                " bytes, which are not those of its shape"));
  tensor.bytes = data.subspan(begin, end - begin);
  return tensor;
}

// Each of the bytes is of one tensor. By their begins, tensors without bytes first.
absl::Status CheckNoHoles(std::vector<SafetensorsRow> rows, uint64_t bytes) {
  std::sort(rows.begin(), rows.end(),
            [](const SafetensorsRow& a, const SafetensorsRow& b) { return a.offsets < b.offsets; });
  uint64_t done = 0;
  for (const SafetensorsRow& row : rows) {
    if (row.offsets[0] < done)
      return Damaged(absl::StrCat("tensor ", Quoted(row.name), " overlaps with another"));
    if (row.offsets[0] > done)
      return Damaged(absl::StrCat("bytes before tensor ", Quoted(row.name), " are of no tensor"));
    done = row.offsets[1];
  }
  if (done != bytes)
    return Damaged(absl::StrCat(bytes - done, " bytes at its end are of no tensor"));
  return absl::OkStatus();
}

}  // namespace

const TensorType* FindSafetensorsType(std::string_view name) {
  for (const uint32_t number : kTypesOfBoth) {
    if (const TensorType* const type = FindTensorType(number); type->name == name) return type;
  }
  for (const TensorType& type : kOtherTypes) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

absl::StatusOr<TensorSet> DecodeSafetensorsUntrusted(std::span<const std::byte> file) {
  Cursor in(file);
  const uint64_t header_bytes = in.Number<uint64_t>();
  if (!in.ok()) return CutShort("header");
  // Other files' first bytes are read as a length, too, and most of these are beyond any header.
  if (header_bytes > kSafetensorsHeaderBytesMax)
    return absl::InvalidArgumentError(
        "is no safetensors file, or one whose header is over 32 MiB; name a model's directory");
  const std::span<const std::byte> header = in.Bytes(header_bytes);
  if (!in.ok()) return CutShort("header");
  const absl::StatusOr<std::vector<SafetensorsRow>> rows =
      ReadSafetensorsHeaderUntrusted({reinterpret_cast<const char*>(header.data()), header.size()});
  if (!rows.ok()) return rows.status();
  const std::span<const std::byte> data = file.subspan(in.at());
  TensorSet tensors;
  for (const SafetensorsRow& row : *rows) {
    absl::StatusOr<Tensor> tensor = TensorOf(row, data);
    if (!tensor.ok()) return tensor.status();
    tensors.Add(*std::move(tensor));  // the header's names are all different
  }
  if (const absl::Status fine = CheckNoHoles(*rows, data.size()); !fine.ok()) return fine;
  return tensors;
}

}  // namespace serve::llm
