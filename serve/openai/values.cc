#include "serve/openai/values.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "serve/json_depth.h"

namespace serve::openai {
namespace {

constexpr int64_t kTokenMax = std::numeric_limits<int32_t>::max();
constexpr size_t kTextBytesMax = 256;  // of names, users, salts and stops
constexpr size_t kBiasesMax = 1024;
constexpr size_t kMessagesMax = 4096;

// Part of a message, as text or as an object {"type": "text", "text": ...}.
std::string ReadPart(const Json& part, std::string* text) {
  if (part.is_string()) {
    *text += part.get_ref<const std::string&>();
    return "";
  }
  if (!part.is_object()) return "has a message with a part that is no object";
  const auto type = part.find("type");
  if (type == part.end() || *type != "text")
    return "has a message with a part that is no text; only text is served";
  const auto found = part.find("text");
  if (found == part.end() || !found->is_string()) return "has a part whose text is no string";
  *text += found->get_ref<const std::string&>();
  return "";
}

std::string ReadMessage(const Json& value, ChatMessage* message) {
  if (!value.is_object()) return "has a message that is no object";
  const auto role = value.find("role");
  if (role == value.end() || !role->is_string()) return "has a message without a role";
  message->role = role->get<std::string>();
  const auto content = value.find("content");
  if (content == value.end() || content->is_null()) return "has a message without content";
  if (!content->is_array()) {
    return content->is_string() ? ReadPart(*content, &message->content)
                                : "has a message whose content is neither a string nor a list";
  }
  for (const Json& part : *content) {
    if (std::string wrong = ReadPart(part, &message->content); !wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace

std::string ReadBodyUntrusted(std::string_view body, Json* object) {
  if (IsDeeperThan(kDepthMax, body))
    return absl::StrCat("the body is nested over ", kDepthMax, " levels deep");
  *object = Json::parse(body, nullptr, false);
  if (object->is_discarded()) return "the body is no valid JSON in UTF-8";
  return object->is_object() ? "" : "the body is no JSON object";
}

std::string Read(const Json& value, bool* result) {
  if (!value.is_boolean()) return "must be true or false";
  *result = value.get<bool>();
  return "";
}

std::string Read(const Json& value, double least, double most, double* result) {
  if (!value.is_number()) return "must be a number";
  *result = value.get<double>();
  if (!std::isfinite(*result) || *result < least || *result > most)
    return absl::StrCat("must be from ", least, " to ", most);
  return "";
}

// Clients of loosely typed languages send 16.0 for 16.
std::string Read(const Json& value, int64_t least, int64_t most, int64_t* result) {
  if (!value.is_number()) return "must be an integer";
  const std::string range = absl::StrCat("must be an integer from ", least, " to ", most);
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (number != std::floor(number)) return "must be an integer";
    if (!(std::fabs(number) < 9e15)) return range;
    *result = static_cast<int64_t>(number);
  } else if (value.is_number_unsigned() &&
             value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return range;
  } else {
    *result = value.get<int64_t>();
  }
  return *result < least || *result > most ? range : "";
}

std::string Read(const Json& value, std::string* result) {
  if (!value.is_string()) return "must be a string";
  *result = value.get<std::string>();
  return result->size() > kTextBytesMax ? absl::StrCat("has over ", kTextBytesMax, " bytes") : "";
}

std::string ReadTexts(const Json& value, std::vector<std::string>* texts) {
  if (!value.is_string() && !value.is_array()) return "must be a string or a list of strings";
  const Json list = value.is_array() ? value : Json::array({value});
  if (list.size() > kStopsMax) return absl::StrCat("has over ", kStopsMax, " strings");
  for (const Json& item : list) {
    if (std::string wrong = Read(item, &texts->emplace_back()); !wrong.empty()) return wrong;
    if (texts->back().empty()) return "has an empty string";
  }
  return "";
}

std::string ReadTokens(const Json& value, std::vector<int32_t>* tokens) {
  if (!value.is_array()) return "must be a list of tokens";
  for (const Json& item : value) {
    int64_t token = 0;
    if (!item.is_number_integer() || !Read(item, 0, kTokenMax, &token).empty())
      return "has an element that is no token";
    tokens->push_back(static_cast<int32_t>(token));
  }
  return "";
}

std::string ReadPrompts(const Json& value, std::vector<Prompt>* prompts) {
  const bool is_one =
      value.is_string() || (value.is_array() && !value.empty() && value.front().is_number());
  if (!is_one && !value.is_array()) return "must be text, tokens, or a list of them";
  if (!is_one && value.size() > kPromptsMax)
    return absl::StrCat("has over ", kPromptsMax, " parts");
  const Json list = is_one ? Json::array({value}) : value;
  if (list.empty()) return "is empty";
  for (const Json& item : list) {
    std::vector<int32_t> tokens;
    if (item.is_string()) {
      prompts->emplace_back(item.get<std::string>());
      continue;
    }
    if (std::string wrong = ReadTokens(item, &tokens); !wrong.empty()) return wrong;
    prompts->emplace_back(std::move(tokens));
  }
  return "";
}

std::string ReadMessages(const Json& value, std::vector<ChatMessage>* messages) {
  if (!value.is_array()) return "must be a list of messages";
  if (value.empty()) return "is empty";
  if (value.size() > kMessagesMax) return absl::StrCat("has over ", kMessagesMax, " messages");
  for (const Json& item : value) {
    if (std::string wrong = ReadMessage(item, &messages->emplace_back()); !wrong.empty())
      return wrong;
  }
  return "";
}

std::string ReadBias(const Json& value, std::vector<std::pair<int32_t, float>>* bias) {
  if (!value.is_object()) return "must be an object of tokens and numbers";
  if (value.size() > kBiasesMax) return absl::StrCat("names over ", kBiasesMax, " tokens");
  for (const auto& [name, amount] : value.items()) {
    int32_t token = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), token);
    if (error != std::errc() || end != name.data() + name.size() || token < 0)
      return "has a name that is no token";
    double number = 0;
    if (std::string wrong = Read(amount, -100, 100, &number); !wrong.empty()) return wrong;
    bias->emplace_back(token, static_cast<float>(number));
  }
  return "";
}

}  // namespace serve::openai
