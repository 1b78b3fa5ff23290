#include "functions/npy.h"

#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace functions {
namespace {

constexpr char kNpyMagic[] = "\x93NUMPY";
constexpr size_t kNpyMagicBytes = 6;
constexpr size_t kHeaderAlignment = 64;

// The text between `key` and `end` in the header, without what is around it.
std::optional<std::string_view> ValueOf(std::string_view header, std::string_view key,
                                        std::string_view end) {
  const size_t at = header.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = header.substr(at + key.size());
  const size_t stop = rest.find(end);
  if (stop == std::string_view::npos) return std::nullopt;
  rest = rest.substr(0, stop);
  while (!rest.empty() && (rest.front() == ' ' || rest.front() == ':')) rest.remove_prefix(1);
  return rest;
}

bool ReadShape(std::string_view text, std::vector<uint64_t>* shape) {
  const size_t open = text.find('(');
  if (open == std::string_view::npos) return false;
  const std::string sides(text.substr(open + 1));
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(sides, ','))) {
    std::string side = part;
    absl::StripAsciiWhitespace(&side);
    if (side.empty()) continue;
    uint64_t number = 0;
    if (!absl::SimpleAtoi(side, &number) || shape->size() == kTensorRankMax) return false;
    shape->push_back(number);
  }
  return true;
}

// Where the bytes begin; nothing: no header is there.
std::optional<std::string_view> HeaderOf(std::span<const std::byte> file, size_t* data) {
  const char* const text = reinterpret_cast<const char*>(file.data());
  if (file.size() < 12 || std::memcmp(text, kNpyMagic, kNpyMagicBytes) != 0) return std::nullopt;
  const uint8_t version = static_cast<uint8_t>(text[6]);
  uint32_t bytes = 0;
  const size_t size_bytes = version == 1 ? 2 : 4;
  if (version < 1 || version > 3) return std::nullopt;
  std::memcpy(&bytes, text + 8, size_bytes);
  const size_t begin = 8 + size_bytes;
  if (bytes > file.size() - begin) return std::nullopt;
  *data = begin + bytes;
  return std::string_view(text + begin, bytes);
}

}  // namespace

bool DecodeNpyUntrusted(std::span<const std::byte> file, Array* array, std::string* why) {
  size_t data = 0;
  const std::optional<std::string_view> header = HeaderOf(file, &data);
  if (!header.has_value()) {
    *why = "is no .npy file; write it with numpy.save";
    return false;
  }
  const std::optional<std::string_view> descr = ValueOf(*header, "'descr'", ",");
  const std::optional<std::string_view> order = ValueOf(*header, "'fortran_order'", ",");
  const std::optional<std::string_view> shape = ValueOf(*header, "'shape'", ")");
  // '<f4' with its quotes.
  const std::optional<ElementType> type =
      descr.has_value() && descr->size() > 3 && ((*descr)[1] == '<' || (*descr)[1] == '|')
          ? ElementTypeOfNumpy(descr->substr(2, descr->size() - 3))
          : std::nullopt;
  Array read;
  if (!type.has_value() || order != "False" || !shape.has_value() ||
      !ReadShape(*shape, &read.type.shape)) {
    *why =
        "holds no array of little-endian numbers in C order; convert it with "
        "numpy.ascontiguousarray";
    return false;
  }
  read.type.type = *type;
  if (BytesOf(read.type) != file.size() - data) {
    *why = "is cut short, or longer than its shape says; write it again";
    return false;
  }
  read.bytes.assign(file.begin() + static_cast<ptrdiff_t>(data), file.end());
  *array = std::move(read);
  return true;
}

Bytes EncodeNpy(const TensorType& type, std::span<const std::byte> bytes) {
  const ElementTypeFacts& facts = FactsOf(type.type);
  std::string header =
      absl::StrCat("{'descr': '", facts.bytes == 1 ? "|" : "<", std::string(facts.numpy),
                   "', 'fortran_order': False, 'shape': (", absl::StrJoin(type.shape, ", "),
                   type.shape.size() == 1 ? ",), }" : "), }");
  const size_t begin = kNpyMagicBytes + 4;
  const size_t padding =
      (kHeaderAlignment - (begin + header.size() + 1) % kHeaderAlignment) % kHeaderAlignment;
  header.append(padding, ' ');
  header.push_back('\n');
  std::string text(kNpyMagic, kNpyMagicBytes);
  text.append(
      {'\1', '\0', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)});
  text += header;
  const std::span<const std::byte> head = std::as_bytes(std::span(text));
  Bytes file(head.begin(), head.end());
  file.insert(file.end(), bytes.begin(), bytes.end());
  return file;
}

}  // namespace functions
