#include "serve/llm/format/safetensors_header.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "serve/llm/format/refusal.h"
#include "serve/llm/format/safetensors.h"

namespace serve::llm {
namespace {

constexpr std::string_view kMetadata = "__metadata__";
constexpr size_t kOffsets = 2;

// Takes the parser's events. An event that returns false ends the parsing; fault() says why.
class HeaderEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  const absl::Status& fault() const { return fault_; }
  std::vector<SafetensorsRow> TakeRows() { return std::move(rows_); }

  bool start_object(size_t) override {
    if (place_ == Place::kOutside) return Enter(Place::kTensors);
    if (place_ != Place::kTensors || key_.empty()) return Fail("an object is where none belongs");
    if (key_ == kMetadata) return Enter(Place::kMetadata);
    if (rows_.size() == kSafetensorsTensorsMax) return Fail("it has over 65536 tensors");
    rows_.emplace_back().name = key_;
    fields_.clear();
    return Enter(Place::kTensor);
  }

  bool end_object() override {
    if (place_ == Place::kTensors) return Enter(Place::kOutside);
    if (place_ == Place::kTensor &&
        (fields_.size() != 3 || rows_.back().offsets.size() != kOffsets))
      return Fail(absl::StrCat("tensor ", Quoted(rows_.back().name),
                               " is without a dtype, a shape or two data_offsets"));
    return Enter(Place::kTensors);
  }

  bool key(std::string& name) override {
    key_ = name;
    if (place_ == Place::kTensors) {
      if (name.empty() || name.size() > kSafetensorsNameBytesMax)
        return Fail("a tensor's name is empty or too long");
      return names_.insert(name).second || Fail(absl::StrCat("it has ", Quoted(name), " twice"));
    }
    if (place_ == Place::kMetadata) return true;
    if (name != "dtype" && name != "shape" && name != "data_offsets")
      return Fail(absl::StrCat("a tensor has the field ", Quoted(name)));
    return fields_.insert(name).second || Fail(absl::StrCat("a tensor has two fields ", name));
  }

  bool string(std::string& text) override {
    if (place_ == Place::kMetadata) return true;
    if (place_ != Place::kTensor || key_ != "dtype") return Fail("a text is where none belongs");
    rows_.back().type = text;
    return true;
  }

  bool start_array(size_t) override {
    if (place_ != Place::kTensor || key_ == "dtype") return Fail("a list is where none belongs");
    return Enter(Place::kNumbers);
  }
  bool end_array() override { return Enter(Place::kTensor); }

  bool number_unsigned(uint64_t number) override {
    if (place_ != Place::kNumbers) return Fail("a number is where none belongs");
    const bool is_shape = key_ == "shape";
    std::vector<uint64_t>& numbers = is_shape ? rows_.back().shape : rows_.back().offsets;
    if (numbers.size() == (is_shape ? kSafetensorsRankMax : kOffsets))
      return Fail(absl::StrCat("tensor ", Quoted(rows_.back().name), " has too many ",
                               is_shape ? "sides" : "offsets"));
    numbers.push_back(number);
    return true;
  }

  bool number_integer(int64_t) override { return Fail("a number is negative"); }
  bool number_float(double, const std::string&) override { return Fail("a number is not whole"); }
  bool boolean(bool) override { return Fail("a truth value is where none belongs"); }
  bool null() override { return Fail("null is where a value belongs"); }
  bool binary(nlohmann::json::binary_t&) override { return Fail("bytes are no JSON"); }
  bool parse_error(size_t at, const std::string&, const nlohmann::json::exception&) override {
    return Fail(absl::StrCat("its header is no JSON from byte ", at, " on"));
  }

 private:
  // Where in the header the next event is. No list and no object is within another of its kind, so
  // the depth is bounded.
  enum class Place { kOutside, kTensors, kMetadata, kTensor, kNumbers };

  bool Enter(Place place) {
    place_ = place;
    return true;
  }
  bool Fail(std::string_view what) {
    if (fault_.ok()) fault_ = Damaged(what);
    return false;
  }

  Place place_ = Place::kOutside;
  std::string key_;
  absl::flat_hash_set<std::string> names_;
  absl::flat_hash_set<std::string> fields_;  // of the tensor
  std::vector<SafetensorsRow> rows_;
  absl::Status fault_;
};

}  // namespace

absl::StatusOr<std::vector<SafetensorsRow>> ReadSafetensorsHeaderUntrusted(
    std::string_view header) {
  HeaderEvents events;
  const bool whole = nlohmann::json::sax_parse(header.begin(), header.end(), &events);
  if (!events.fault().ok()) return events.fault();
  if (!whole) return Damaged("its header is no JSON");
  return events.TakeRows();
}

}  // namespace serve::llm
