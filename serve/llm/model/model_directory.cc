// A model of a directory: what its JSON files say, beside its tensors.
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "serve/llm/format/json_values.h"
#include "serve/llm/format/refusal.h"
#include "serve/llm/model/config_sizes.h"
#include "serve/llm/model/model.h"
#include "serve/llm/model/text_of_model.h"

namespace serve::llm {
namespace {

// The end of a sentence on a file, as the end of one on its directory.
absl::Status Within(std::string_view file, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("has a ", std::string(file), " that ",
                                                  std::string(status.message())));
}

// An empty object where there is no such file.
absl::StatusOr<Json> Decode(std::string_view file, std::string_view text) {
  if (text.empty()) return Json::object();
  absl::StatusOr<Json> json = DecodeJsonUntrusted(text);
  if (!json.ok()) return Within(file, json.status());
  return json;
}

absl::StatusOr<Tokenizer> TokenizerOf(std::string_view tokenizer_json) {
  if (tokenizer_json.empty())
    return absl::InvalidArgumentError("has no tokenizer.json; use the directory of a whole model");
  absl::StatusOr<Tokenizer> tokenizer = Tokenizer::OfJsonUntrusted(tokenizer_json);
  if (!tokenizer.ok()) return Within("tokenizer.json", tokenizer.status());
  return tokenizer;
}

// Numbers of eos_token_id, which is a number or a list. Nothing: there is no such member.
std::optional<std::vector<uint64_t>> EndsOf(const Json& json) {
  const Json* const member = Member(json, "eos_token_id");
  if (member == nullptr) return std::nullopt;
  std::vector<uint64_t> ends;
  // A value that is no number of a token is none of the tokens.
  const auto add = [&ends](const Json& end) {
    ends.push_back(end.is_number_unsigned() ? end.get<uint64_t>() : UINT64_MAX);
  };
  if (member->is_array()) {
    for (const Json& end : *member) add(end);
  } else {
    add(*member);
  }
  return ends;
}

class DirectoryTextReader {
 public:
  DirectoryTextReader(const DirectoryTexts& texts, const Json& config, const Tokenizer& tokenizer)
      : texts_(texts), config_(config), tokenizer_(tokenizer) {}

  absl::StatusOr<ModelText> Read() {
    absl::StatusOr<Json> settings = Decode("tokenizer_config.json", texts_.tokenizer_config);
    if (!settings.ok()) return settings.status();
    absl::StatusOr<Json> generation = Decode("generation_config.json", texts_.generation_config);
    if (!generation.ok()) return generation.status();
    // generation_config.json is where transformers looks first.
    std::optional<std::vector<uint64_t>> ends = EndsOf(*generation);
    if (!ends.has_value()) ends = EndsOf(config_);
    ModelText text;
    text.chat_template = TemplateOf(*settings);
    text.first_token = TokenText(*settings, "bos_token", "bos_token_id");
    text.end_token = TokenText(*settings, "eos_token", "eos_token_id");
    std::vector<uint64_t> all = ends.value_or(std::vector<uint64_t>());
    // Chats end with the tokenizer's own end, which other files may not have been told of.
    if (const std::optional<int32_t> end = NumberOfToken(text.end_token); end.has_value())
      all.push_back(static_cast<uint64_t>(*end));
    return TextWithEnds(std::move(text), std::move(all), tokenizer_);
  }

 private:
  // A file of its own goes before. Of several named templates, "default" is the one for chats.
  std::string TemplateOf(const Json& settings) const {
    if (!texts_.chat_template.empty()) return std::string(texts_.chat_template);
    for (const Json& named : ArrayOf(settings, "chat_template")) {
      if (TextOf(named, "name") == "default") return std::string(TextOf(named, "template"));
    }
    return std::string(TextOf(settings, "chat_template"));
  }

  // tokenizer_config.json has a text, or an object with one; config.json has the token's number.
  std::string TokenText(const Json& settings, const char* text, const char* number) const {
    const Json* const said = Member(settings, text);
    if (said != nullptr)
      return std::string(said->is_object() ? TextOf(*said, "content") : TextOf(settings, text));
    const std::optional<uint64_t> token = UnsignedOf(config_, number);
    if (!token.has_value() || *token >= tokenizer_.size()) return "";
    return std::string(tokenizer_.BytesOf(static_cast<int32_t>(*token)));
  }

  std::optional<int32_t> NumberOfToken(const std::string& text) const {
    if (text.empty()) return std::nullopt;
    for (int32_t token = 0; static_cast<size_t>(token) < tokenizer_.size(); ++token) {
      if (tokenizer_.IsControl(token) && tokenizer_.BytesOf(token) == text) return token;
    }
    return std::nullopt;
  }

  const DirectoryTexts& texts_;
  const Json& config_;
  const Tokenizer& tokenizer_;
};

}  // namespace

Model ModelOfDirectoryUntrusted(const DirectoryTexts& texts, TensorSet tensors) {
  Model model;
  model.format = "safetensors";
  model.name = texts.name;
  model.file_tensors = std::move(tensors);
  absl::StatusOr<Json> config = Decode("config.json", texts.config);
  if (config.ok()) {
    model.architecture = ClassOfConfig(*config);
    model.sizes = SizesOfConfig(*config);
  } else {
    model.sizes = config.status();
    config = Json::object();
  }
  if (model.sizes.ok())
    model.tensors = ModelTensors(model.file_tensors, TensorNames::kTransformers, *model.sizes);
  model.tokenizer = FitTokenizer(TokenizerOf(texts.tokenizer), model.sizes);
  if (!model.tokenizer.ok()) return model;
  model.tokenizer_kind = "tokenizer.json";
  model.text = DirectoryTextReader(texts, *config, *model.tokenizer).Read();
  return model;
}

}  // namespace serve::llm
