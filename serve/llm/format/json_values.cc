#include "serve/llm/format/json_values.h"

#include "serve/json_depth.h"

namespace serve::llm {
namespace {

// Of nothing too, so that one may ask further.
template <typename T>
const T* ValueOf(const Json& object, const char* name) {
  const Json* const member = Member(object, name);
  return member == nullptr ? nullptr : member->get_ptr<const T*>();
}

}  // namespace

absl::StatusOr<Json> DecodeJsonUntrusted(std::string_view text) {
  if (text.size() > kJsonBytesMax)
    return absl::InvalidArgumentError("is too large to be a description of a model");
  if (IsDeeperThan(kJsonDepthMax, text))
    return absl::InvalidArgumentError("has lists in lists, over 64 deep, which is not read");
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object())
    return absl::InvalidArgumentError("is damaged: it is no object of JSON; fetch it again");
  return json;
}

const Json* Member(const Json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::optional<bool> TruthOf(const Json& object, const char* name) {
  const bool* const truth = ValueOf<bool>(object, name);
  return truth == nullptr ? std::nullopt : std::optional<bool>(*truth);
}

std::optional<double> NumberOf(const Json& object, const char* name) {
  const Json* const member = Member(object, name);
  if (member == nullptr || !member->is_number()) return std::nullopt;
  return member->get<double>();
}

std::optional<uint64_t> UnsignedOf(const Json& object, const char* name) {
  const Json* const member = Member(object, name);
  if (member == nullptr || !member->is_number_unsigned()) return std::nullopt;
  return member->get<uint64_t>();
}

std::string_view TextOf(const Json& object, const char* name) {
  const std::string* const text = ValueOf<std::string>(object, name);
  return text == nullptr ? std::string_view() : std::string_view(*text);
}

const Json& ArrayOf(const Json& object, const char* name) {
  static const Json& none = *new Json(Json::array());
  const Json* const member = Member(object, name);
  return member != nullptr && member->is_array() ? *member : none;
}

}  // namespace serve::llm
