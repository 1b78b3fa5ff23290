// A tokenizer from a tokenizer.json of the package tokenizers: BPE over bytes or characters. Steps
// that are not known are refused by their name, so that no text becomes other tokens silently.
#include <algorithm>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "serve/llm/format/json_values.h"
#include "serve/llm/format/refusal.h"
#include "serve/llm/text/expression.h"
#include "serve/llm/text/known_splits.h"
#include "serve/llm/text/space_mark.h"
#include "serve/llm/text/tokenizer_parts.h"
#include "serve/llm/text/utf8.h"

namespace serve::llm {
namespace {

constexpr size_t kStepsMax = 18;  // as many splits as a splitter has, marks before, bytes after
constexpr size_t kDepthMax = 4;   // of sequences in sequences
// Numbers without a token take room, too.
constexpr size_t kHolesMax = size_t{1} << 16;

absl::Status NotSupported(std::string_view part, std::string_view name) {
  return absl::UnimplementedError(
      absl::StrCat("has a ", std::string(part), " that is not supported (", Quoted(name), ")"));
}

class JsonTokenizerReader {
 public:
  explicit JsonTokenizerReader(const Json& json) : json_(json) {}

  absl::StatusOr<TokenizerParts> Read() {
    parts_.pairs.byte_level = false;
    using Part = absl::Status (JsonTokenizerReader::*)();
    for (const Part part :
         {&JsonTokenizerReader::ReadModel, &JsonTokenizerReader::ReadAddedTokens}) {
      if (const absl::Status fine = (this->*part)(); !fine.ok()) return fine;
    }
    using Step = absl::Status (JsonTokenizerReader::*)(const Json&);
    const std::tuple<const char*, const char*, Step> steps[] = {
        {"normalizer", "normalizers", &JsonTokenizerReader::ReadNormalizer},
        {"pre_tokenizer", "pretokenizers", &JsonTokenizerReader::ReadPreTokenizer},
        {"post_processor", "processors", &JsonTokenizerReader::ReadPostProcessor},
        {"decoder", "decoders", &JsonTokenizerReader::ReadDecoder}};
    for (const auto& [name, list, step] : steps) {
      const Json* const described = Member(json_, name);
      if (described == nullptr) continue;
      steps_ = 0;
      const absl::Status fine = ForEach(*described, list, step, 0);
      if (!fine.ok()) return fine;
    }
    if (parts_.pairs.byte_level != decodes_bytes_) return NotSupported("decoder", "of other bytes");
    return std::move(parts_);
  }

 private:
  // Applies `step` to a part, or to the parts of a sequence in turn.
  absl::Status ForEach(const Json& described, const char* list,
                       absl::Status (JsonTokenizerReader::*step)(const Json&), size_t depth) {
    if (TextOf(described, "type") != "Sequence") {
      if (++steps_ > kStepsMax) return NotSupported(list, "of over 18 steps");
      return (this->*step)(described);
    }
    if (depth == kDepthMax) return NotSupported(list, "Sequence");
    for (const Json& inner : ArrayOf(described, list)) {
      const absl::Status fine = ForEach(inner, list, step, depth + 1);
      if (!fine.ok()) return fine;
    }
    return absl::OkStatus();
  }

  absl::Status ReadModel();
  absl::Status ReadVocabulary(const Json& model);
  absl::Status ReadMerges(const Json& model);
  absl::Status ReadAddedTokens();
  absl::Status ReadNormalizer(const Json& step);
  absl::Status ReadPreTokenizer(const Json& step);
  absl::Status ReadSplit(const Json& step);
  absl::Status ReadMetaspace(const Json& step);
  absl::Status ReadPostProcessor(const Json& step);
  absl::Status ReadDecoder(const Json& step);
  absl::Status Place(int64_t number, std::string_view text, size_t tokens);

  const Json& json_;
  size_t steps_ = 0;
  bool decodes_bytes_ = false;
  TokenizerParts parts_;
};

// `tokens`: how many the file has, which bounds their numbers.
absl::Status JsonTokenizerReader::Place(int64_t number, std::string_view text, size_t tokens) {
  if (number < 0 || static_cast<uint64_t>(number) >= tokens + kHolesMax)
    return Damaged(absl::StrCat("a token has the number ", number));
  const size_t place = static_cast<size_t>(number);
  if (place >= parts_.tokens.size()) {
    parts_.tokens.resize(place + 1);
    parts_.kinds.resize(place + 1, TokenKind::kText);
  }
  if (!parts_.tokens[place].empty() && parts_.tokens[place] != text)
    return Damaged(absl::StrCat("two tokens have the number ", number));
  parts_.tokens[place] = text;
  return absl::OkStatus();
}

absl::Status JsonTokenizerReader::ReadModel() {
  const Json* const model = Member(json_, "model");
  if (model == nullptr) return Damaged("it has no model");
  // Files of before 2020 leave the type out.
  const std::string_view type = TextOf(*model, "type");
  if (type != "BPE" && !(type.empty() && Member(*model, "merges") != nullptr))
    return absl::UnimplementedError(
        absl::StrCat("has a tokenizer of kind ", Quoted(type), "; BPE is read"));
  for (const char* const affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!TextOf(*model, affix).empty()) return NotSupported("model", affix);
  }
  if (NumberOf(*model, "dropout").value_or(0) != 0) return NotSupported("model", "dropout");
  parts_.pairs.whole_pieces = TruthOf(*model, "ignore_merges").value_or(false);
  parts_.pairs.byte_fallback = TruthOf(*model, "byte_fallback").value_or(false);
  parts_.pairs.fuse_unknown = TruthOf(*model, "fuse_unk").value_or(false);
  if (const absl::Status fine = ReadVocabulary(*model); !fine.ok()) return fine;
  return ReadMerges(*model);
}

absl::Status JsonTokenizerReader::ReadVocabulary(const Json& model) {
  const Json* const vocabulary = Member(model, "vocab");
  if (vocabulary == nullptr || !vocabulary->is_object() || vocabulary->empty())
    return Damaged("it has no vocabulary");
  const std::string_view unknown = TextOf(model, "unk_token");
  for (const auto& [text, number] : vocabulary->items()) {
    if (!number.is_number_integer()) return Damaged("a token has no number");
    const int64_t place = number.get<int64_t>();
    const absl::Status fine = Place(place, text, vocabulary->size());
    if (!fine.ok()) return fine;
    if (parts_.pairs.byte_fallback && ByteOfToken(text).has_value())
      parts_.kinds[static_cast<size_t>(place)] = TokenKind::kByte;
    if (!unknown.empty() && text == unknown) parts_.unknown = place;
  }
  if (!unknown.empty() && !parts_.unknown.has_value())
    return Damaged("its token for what is unknown is none of its own");
  return absl::OkStatus();
}

// A merge is "a b" in older files, ["a", "b"] in later ones.
absl::Status JsonTokenizerReader::ReadMerges(const Json& model) {
  for (const Json& merge : ArrayOf(model, "merges")) {
    TokenMerge pair;
    pair.rank = static_cast<uint32_t>(parts_.merges.size());
    if (const std::string* const text = merge.get_ptr<const std::string*>(); text != nullptr) {
      const size_t space = text->find(' ');
      if (space == text->npos || text->find(' ', space + 1) != text->npos)
        return Damaged("a merge is no pair");
      pair.left = text->substr(0, space);
      pair.right = text->substr(space + 1);
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
               merge[1].is_string()) {
      pair.left = merge[0].get<std::string>();
      pair.right = merge[1].get<std::string>();
    } else {
      return Damaged("a merge is no pair");
    }
    parts_.merges.push_back(std::move(pair));
  }
  return absl::OkStatus();
}

// Added tokens may be of the vocabulary, or continue its numbers.
absl::Status JsonTokenizerReader::ReadAddedTokens() {
  const Json& added = ArrayOf(json_, "added_tokens");
  const size_t tokens = parts_.tokens.size() + added.size();
  for (const Json& token : added) {
    const std::string_view text = TextOf(token, "content");
    const std::optional<uint64_t> number = UnsignedOf(token, "id");
    if (text.empty() || !number.has_value() || *number > kTokensMax)
      return Damaged("an added token has no text or no number");
    if (TruthOf(token, "single_word").value_or(false)) return NotSupported("token", text);
    CutToken cut{static_cast<int64_t>(*number)};
    const bool special = TruthOf(token, "special").value_or(false);
    cut.normalised = TruthOf(token, "normalized").value_or(!special);
    cut.strips_left = TruthOf(token, "lstrip").value_or(false);
    cut.strips_right = TruthOf(token, "rstrip").value_or(false);
    if (const absl::Status fine = Place(cut.token, text, tokens); !fine.ok()) return fine;
    parts_.kinds[*number] = special ? TokenKind::kControl : TokenKind::kUserDefined;
    parts_.cut.push_back(cut);
  }
  return absl::OkStatus();
}

// Only steps that the normaliser has. Lowercase and the like are of models that make no text.
absl::Status JsonTokenizerReader::ReadNormalizer(const Json& step) {
  constexpr std::pair<std::string_view, TextChange> kForms[] = {{"NFC", TextChange::kNfc},
                                                                {"NFD", TextChange::kNfd},
                                                                {"NFKC", TextChange::kNfkc},
                                                                {"NFKD", TextChange::kNfkd}};
  const std::string_view type = TextOf(step, "type");
  for (const auto& [name, change] : kForms) {
    if (type != name) continue;
    parts_.normal.push_back({change, "", ""});
    return absl::OkStatus();
  }
  if (type == "Prepend") {
    parts_.normal.push_back({TextChange::kPrepend, "", std::string(TextOf(step, "prepend"))});
    return absl::OkStatus();
  }
  const Json* const pattern = Member(step, "pattern");
  const std::string_view from = pattern == nullptr ? "" : TextOf(*pattern, "String");
  if (type != "Replace" || from.empty()) return NotSupported("normalizer", type);
  parts_.normal.push_back(
      {TextChange::kReplace, std::string(from), std::string(TextOf(step, "content"))});
  return absl::OkStatus();
}

// ByteLevel both splits, unless told otherwise, and turns pieces into letters of bytes. A space
// that it would set before each piece changes the piece's tokens, and no served model has it.
absl::Status JsonTokenizerReader::ReadPreTokenizer(const Json& step) {
  const std::string_view type = TextOf(step, "type");
  // After it text is letters of bytes.
  if (parts_.pairs.byte_level) return NotSupported("pre_tokenizer", type);
  if (type == "Split") return ReadSplit(step);
  if (type == "Metaspace") return ReadMetaspace(step);
  if (type == "Digits") {
    const bool each = TruthOf(step, "individual_digits").value_or(false);
    parts_.stages.push_back({absl::StrCat(std::string(kSplitOfEachDigit), each ? "" : "+")});
  } else if (type == "Whitespace") {
    parts_.stages.push_back({R"(\w+|[^\w\s]+)", KeptPieces::kMatches});
  } else if (type == "WhitespaceSplit") {
    parts_.stages.push_back({R"(\s)", KeptPieces::kBetween});
  } else if (type == "ByteLevel") {
    if (TruthOf(step, "add_prefix_space").value_or(true))
      return NotSupported("pre_tokenizer", "ByteLevel with add_prefix_space");
    if (TruthOf(step, "use_regex").value_or(true))
      parts_.stages.push_back({std::string(kSplitOfGpt2)});
    parts_.pairs.byte_level = true;
  } else {
    return NotSupported("pre_tokenizer", type);
  }
  return absl::OkStatus();
}

// `invert` says which of the two, matches or what is between, the behavior is about.
absl::Status JsonTokenizerReader::ReadSplit(const Json& step) {
  const Json* const pattern = Member(step, "pattern");
  if (pattern == nullptr) return Damaged("it splits by nothing");
  const std::string_view behavior = TextOf(step, "behavior");
  const std::string_view text = TextOf(*pattern, "String");
  SplitStage stage;
  stage.expression = text.empty() ? std::string(TextOf(*pattern, "Regex")) : ExpressionOfText(text);
  if (stage.expression.empty()) return Damaged("it splits by nothing");
  if (behavior == "Removed") {
    stage.kept =
        TruthOf(step, "invert").value_or(false) ? KeptPieces::kMatches : KeptPieces::kBetween;
  } else if (behavior != "Isolated") {
    return NotSupported("pre_tokenizer", absl::StrCat("Split, ", std::string(behavior)));
  }
  parts_.stages.push_back(std::move(stage));
  return absl::OkStatus();
}

absl::Status JsonTokenizerReader::ReadMetaspace(const Json& step) {
  const std::string_view scheme = TextOf(step, "prepend_scheme");
  if (TextOf(step, "replacement") != kSpaceMark || !parts_.stages.empty())
    return NotSupported("pre_tokenizer", "Metaspace of another mark, or after a split");
  const std::string mark(kSpaceMark);
  parts_.marks.push_back({TextChange::kReplace, " ", mark});
  // Before there was a scheme, a truth value said whether there is a mark.
  const bool always =
      scheme == "always" || (scheme.empty() && TruthOf(step, "add_prefix_space").value_or(true));
  if (always) parts_.marks.push_back({TextChange::kPrependOnce, "", mark});
  if (scheme == "first") parts_.marks.push_back({TextChange::kPrependFirst, "", mark});
  // A piece begins at each mark.
  if (TruthOf(step, "split").value_or(true))
    parts_.stages.push_back({absl::StrCat(mark, "[^", mark, "]*")});
  return absl::OkStatus();
}

// A template of one text: what it sets before becomes the first token. The engine makes tokens
// after a prompt itself, so a token there would end the text before it begins.
absl::Status JsonTokenizerReader::ReadPostProcessor(const Json& step) {
  const std::string_view type = TextOf(step, "type");
  if (type == "ByteLevel") return absl::OkStatus();  // offsets alone
  if (type != "TemplateProcessing") return NotSupported("post_processor", type);
  const Json& pieces = ArrayOf(step, "single");
  const Json* const special = pieces.size() == 2 ? Member(pieces[0], "SpecialToken") : nullptr;
  if (pieces.empty() || Member(pieces.back(), "Sequence") == nullptr ||
      (pieces.size() > 1 && special == nullptr) || parts_.first.has_value())
    return NotSupported("post_processor", "other than a token before the text");
  if (special == nullptr) return absl::OkStatus();
  const Json* const tokens = Member(step, "special_tokens");
  const std::string name(TextOf(*special, "id"));
  const Json* const token = tokens == nullptr ? nullptr : Member(*tokens, name.c_str());
  const Json& ids = token == nullptr ? ArrayOf(step, "") : ArrayOf(*token, "ids");
  if (ids.size() != 1 || !ids[0].is_number_unsigned())
    return Damaged("the token before a text has no number");
  parts_.first = static_cast<int64_t>(std::min<uint64_t>(ids[0].get<uint64_t>(), kTokensMax));
  return absl::OkStatus();
}

// The way back is the tokenizer's own (BytesOf): a decoder is read to see that it is the same way.
absl::Status JsonTokenizerReader::ReadDecoder(const Json& step) {
  const std::string_view type = TextOf(step, "type");
  const Json* const pattern = Member(step, "pattern");
  if (type == "ByteLevel") {
    decodes_bytes_ = true;
  } else if (type == "Metaspace") {
    parts_.drops_first_space = TextOf(step, "prepend_scheme") != "never" &&
                               TruthOf(step, "add_prefix_space").value_or(true);
  } else if (type == "Strip") {
    if (TextOf(step, "content") != " " || NumberOf(step, "start") != 1.0 ||
        NumberOf(step, "stop") != 0.0)
      return NotSupported("decoder", "Strip of more than one space");
    parts_.drops_first_space = true;
  } else if (type == "Replace") {
    if (pattern == nullptr || TextOf(*pattern, "String") != kSpaceMark ||
        TextOf(step, "content") != " ")
      return NotSupported("decoder", "Replace of more than marks of spaces");
  } else if (type != "ByteFallback" && type != "Fuse") {
    return NotSupported("decoder", type);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TokenizerParts> TokenizerPartsOfJsonUntrusted(std::string_view tokenizer_json) {
  const absl::StatusOr<Json> json = DecodeJsonUntrusted(tokenizer_json);
  if (!json.ok()) return json.status();
  return JsonTokenizerReader(*json).Read();
}

}  // namespace serve::llm
