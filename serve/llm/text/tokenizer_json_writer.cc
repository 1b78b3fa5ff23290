#include "serve/llm/text/tokenizer_json_writer.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "serve/llm/format/json_values.h"
#include "serve/llm/text/space_mark.h"
#include "serve/llm/text/utf8.h"

namespace serve::llm {
namespace {

absl::Status CannotSay(std::string_view what) {
  return absl::UnimplementedError(
      absl::StrCat("has ", std::string(what), ", which a tokenizer.json cannot say"));
}

// Whether a file of JSON can have the token's text.
bool IsSpelled(const std::string& text) { return !text.empty() && IsUtf8(text); }

// Bytes that are no UTF-8 stand for themselves in no file of JSON.
std::string TextOfJson(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// One step as it is, several as a sequence of the package's kind of list, none as null.
Json InTurn(Json steps, const char* list) {
  if (steps.empty()) return nullptr;
  if (steps.size() == 1) return steps[0];
  return {{"type", "Sequence"}, {list, std::move(steps)}};
}

Json Replacing(std::string_view from, std::string_view to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

// As a step before and as the way back. Splits are stages of their own.
Json ByteLevel() {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", false}};
}

class TokenizerJsonWriter {
 public:
  explicit TokenizerJsonWriter(const TokenizerParts& parts) : parts_(parts) {}

  absl::StatusOr<std::string> Write() {
    if (const absl::Status fine = NumberTexts(); !fine.ok()) return fine;
    absl::StatusOr<Json> normalizer = Normalizer(), pre_tokenizer = PreTokenizer();
    if (!normalizer.ok()) return normalizer.status();
    if (!pre_tokenizer.ok()) return pre_tokenizer.status();
    return TextOfJson({{"version", "1.0"},
                       {"truncation", nullptr},
                       {"padding", nullptr},
                       {"added_tokens", AddedTokens()},
                       {"normalizer", *std::move(normalizer)},
                       {"pre_tokenizer", *std::move(pre_tokenizer)},
                       {"post_processor", PostProcessor()},
                       {"decoder", Decoder()},
                       {"model", Pairs()}});
  }

 private:
  absl::Status NumberTexts();
  Json AddedTokens() const;
  absl::StatusOr<Json> Normalizer() const;
  absl::StatusOr<Json> PreTokenizer() const;
  absl::StatusOr<Json> Marks() const;
  Json PostProcessor() const;
  Json Decoder() const;
  Json Pairs() const;
  Json Merges() const;

  // Empty: the token has none in the file.
  const std::string& TextOfToken(int64_t token) const {
    return parts_.tokens[static_cast<size_t>(token)];
  }
  bool IsWritten(std::string_view text) const { return number_of_text_.contains(text); }

  const TokenizerParts& parts_;
  absl::flat_hash_map<std::string_view, size_t> number_of_text_;
};

// Of two tokens with one text, merges make the first. Tokens that something else names make it
// unclear which of the two a text becomes.
absl::Status TokenizerJsonWriter::NumberTexts() {
  absl::flat_hash_set<size_t> named;
  for (const CutToken& cut : parts_.cut) named.insert(static_cast<size_t>(cut.token));
  if (parts_.unknown.has_value()) named.insert(static_cast<size_t>(*parts_.unknown));
  for (size_t i = 0; i < parts_.tokens.size(); ++i) {
    const std::string& text = parts_.tokens[i];
    if (!IsSpelled(text)) continue;
    const auto [there, added] = number_of_text_.emplace(text, i);
    if (!added && (named.contains(i) || named.contains(there->second)))
      return CannotSay(absl::StrCat("two tokens of one text (numbers ", there->second, " and ", i,
                                    "), one of them special"));
  }
  if (parts_.unknown.has_value() && !IsWritten(TextOfToken(*parts_.unknown)))
    return CannotSay("a token without text for what is unknown");
  return absl::OkStatus();
}

Json TokenizerJsonWriter::AddedTokens() const {
  Json added = Json::array();
  for (const CutToken& cut : parts_.cut) {
    const std::string& text = TextOfToken(cut.token);
    if (!IsWritten(text)) continue;
    const TokenKind kind = parts_.kinds[static_cast<size_t>(cut.token)];
    added.push_back({{"id", cut.token},
                     {"content", text},
                     {"single_word", false},
                     {"lstrip", cut.strips_left},
                     {"rstrip", cut.strips_right},
                     {"normalized", cut.normalised},
                     {"special", kind == TokenKind::kControl}});
  }
  return added;
}

absl::StatusOr<Json> TokenizerJsonWriter::Normalizer() const {
  constexpr std::pair<TextChange, const char*> kForms[] = {{TextChange::kNfc, "NFC"},
                                                           {TextChange::kNfd, "NFD"},
                                                           {TextChange::kNfkc, "NFKC"},
                                                           {TextChange::kNfkd, "NFKD"}};
  Json steps = Json::array();
  for (const TextStep& step : parts_.normal) {
    if (step.change == TextChange::kPrepend) {
      steps.push_back({{"type", "Prepend"}, {"prepend", step.to}});
    } else if (step.change == TextChange::kReplace) {
      steps.push_back(Replacing(step.from, step.to));
    } else {
      const auto* const form = std::find_if(std::begin(kForms), std::end(kForms),
                                            [&step](const std::pair<TextChange, const char*>& is) {
                                              return is.first == step.change;
                                            });
      if (form == std::end(kForms)) return CannotSay("a mark in its normal form");
      steps.push_back({{"type", form->second}});
    }
  }
  return InTurn(std::move(steps), "normalizers");
}

// Marks are the package's step Metaspace, which sets no other ones. Null: there are none.
absl::StatusOr<Json> TokenizerJsonWriter::Marks() const {
  const std::vector<TextStep>& marks = parts_.marks;
  if (marks.empty()) return Json();
  const bool spaces_first = marks[0].change == TextChange::kReplace && marks[0].from == " " &&
                            marks[0].to == kSpaceMark && marks.size() <= 2;
  if (!spaces_first || (marks.size() == 2 && marks[1].to != kSpaceMark))
    return CannotSay("marks other than those of spaces");
  const char* scheme = "never";
  if (marks.size() == 2 && marks[1].change == TextChange::kPrependOnce) scheme = "always";
  if (marks.size() == 2 && marks[1].change == TextChange::kPrependFirst) scheme = "first";
  return Json{{"type", "Metaspace"},
              {"replacement", kSpaceMark},
              {"prepend_scheme", scheme},
              {"split", false}};
}

// Stages are expressions here, whatever step of the package they came from.
absl::StatusOr<Json> TokenizerJsonWriter::PreTokenizer() const {
  absl::StatusOr<Json> marks = Marks();
  if (!marks.ok()) return marks.status();
  Json steps = Json::array();
  if (!marks->is_null()) steps.push_back(*std::move(marks));
  for (const SplitStage& stage : parts_.stages) {
    steps.push_back({{"type", "Split"},
                     {"pattern", {{"Regex", stage.expression}}},
                     {"behavior", stage.kept == KeptPieces::kAll ? "Isolated" : "Removed"},
                     {"invert", stage.kept == KeptPieces::kMatches}});
  }
  if (parts_.pairs.byte_level) steps.push_back(ByteLevel());
  return InTurn(std::move(steps), "pretokenizers");
}

// The package wants a name for the token before a text; its number is what counts.
Json TokenizerJsonWriter::PostProcessor() const {
  if (!parts_.first.has_value()) return nullptr;
  const std::string& text = TextOfToken(*parts_.first);
  const Json first = {{"SpecialToken", {{"id", text}, {"type_id", 0}}}};
  const Json one = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const Json other = {{"Sequence", {{"id", "B"}, {"type_id", 1}}}};
  const Json token = {
      {"id", text}, {"ids", Json::array({*parts_.first})}, {"tokens", Json::array({text})}};
  return {{"type", "TemplateProcessing"},
          {"single", Json::array({first, one})},
          {"pair", Json::array({first, one, other})},
          {"special_tokens", {{text, token}}}};
}

// The same way back as Tokenizer::BytesOf, over the whole text: bytes that make no character
// together become U+FFFD.
Json TokenizerJsonWriter::Decoder() const {
  Json steps = Json::array();
  if (parts_.pairs.byte_level) {
    steps.push_back(ByteLevel());
  } else {
    steps.push_back(Replacing(kSpaceMark, " "));
    if (parts_.pairs.byte_fallback) steps.push_back({{"type", "ByteFallback"}});
    steps.push_back({{"type", "Fuse"}});
  }
  if (parts_.drops_first_space)
    steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return InTurn(std::move(steps), "decoders");
}

// All tokens are of the vocabulary, special ones too: the package would give others numbers of its
// own choice.
Json TokenizerJsonWriter::Pairs() const {
  Json vocabulary = Json::object();
  for (const auto& [text, number] : number_of_text_) vocabulary[std::string(text)] = number;
  Json unknown;
  if (parts_.unknown.has_value()) unknown = TextOfToken(*parts_.unknown);
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", std::move(unknown)},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", parts_.pairs.fuse_unknown},
          {"byte_fallback", parts_.pairs.byte_fallback},
          {"ignore_merges", parts_.pairs.whole_pieces},
          {"vocab", std::move(vocabulary)},
          {"merges", Merges()}};
}

// The package refuses merges of what is no token, and takes the last of equal ones: BytePairs takes
// the first.
Json TokenizerJsonWriter::Merges() const {
  std::vector<const TokenMerge*> merges;
  absl::flat_hash_set<std::pair<std::string_view, std::string_view>> seen;
  for (const TokenMerge& merge : parts_.merges) {
    const bool is_known = IsWritten(merge.left) && IsWritten(merge.right) &&
                          IsWritten(absl::StrCat(merge.left, merge.right));
    if (is_known && seen.emplace(merge.left, merge.right).second) merges.push_back(&merge);
  }
  std::stable_sort(merges.begin(), merges.end(),
                   [](const TokenMerge* a, const TokenMerge* b) { return a->rank < b->rank; });
  Json pairs = Json::array();
  for (const TokenMerge* const merge : merges)
    pairs.push_back(Json::array({merge->left, merge->right}));
  return pairs;
}

}  // namespace

absl::StatusOr<std::string> TokenizerJson(const TokenizerParts& parts) {
  return TokenizerJsonWriter(parts).Write();
}

std::string TokenizerConfigJson(const TokenizerParts& parts, const TokenizerSettings& settings) {
  Json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                 {"clean_up_tokenization_spaces", false},
                 {"model_max_length", settings.length_max}};
  const absl::flat_hash_set<std::string_view> tokens(parts.tokens.begin(), parts.tokens.end());
  std::string unknown;
  if (parts.unknown.has_value()) unknown = parts.tokens[static_cast<size_t>(*parts.unknown)];
  const std::pair<const char*, std::string> named[] = {{"bos_token", settings.first_token},
                                                       {"eos_token", settings.end_token},
                                                       {"unk_token", unknown}};
  for (const auto& [name, text] : named) {
    if (IsSpelled(text) && tokens.contains(text)) config[name] = text;
  }
  // Clients that draw random tokens leave these out.
  Json others = Json::array();
  for (const CutToken& cut : parts.cut) {
    const std::string& text = parts.tokens[static_cast<size_t>(cut.token)];
    const bool is_named = std::any_of(std::begin(named), std::end(named),
                                      [&text](const auto& is) { return is.second == text; });
    const bool is_control = parts.kinds[static_cast<size_t>(cut.token)] == TokenKind::kControl;
    if (is_control && !is_named && IsSpelled(text)) others.push_back(text);
  }
  if (!others.empty()) config["additional_special_tokens"] = std::move(others);
  if (!settings.chat_template.empty()) config["chat_template"] = settings.chat_template;
  return TextOfJson(config);
}

}  // namespace serve::llm
