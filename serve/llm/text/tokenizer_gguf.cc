// A tokenizer from a GGUF file's metadata. Of byte-level BPE the file has the merges, and names how
// text is split ("pre"): readers know the expressions by that name. Of SentencePiece it has a score
// for each token: of all pairs that make a token, the one whose token scores highest is merged.
#include <algorithm>
#include <cmath>
#include <functional>

#include "absl/strings/str_cat.h"
#include "serve/llm/text/known_splits.h"
#include "serve/llm/text/space_mark.h"
#include "serve/llm/text/tokenizer_parts.h"
#include "serve/llm/text/utf8.h"

namespace serve::llm {
namespace {

struct SplitRow {
  std::string_view name;  // tokenizer.ggml.pre
  std::string_view stages[2];
  bool whole_pieces;
  bool first_if_unsaid;  // whether a text has a first token when the file does not say
  bool normal_form;      // NFC comes before
};
constexpr SplitRow kSplits[] = {
    {"gpt-2", {kSplitOfGpt2}, false, false, false},
    {"gpt2", {kSplitOfGpt2}, false, false, false},
    {"smollm", {kSplitOfEachDigit, kSplitOfGpt2}, false, false, false},
    {"starcoder", {kSplitOfEachDigit, kSplitOfGpt2}, false, false, false},
    {"llama-bpe", {kSplitOfLlama3}, true, true, false},
    {"llama3", {kSplitOfLlama3}, true, true, false},
    {"qwen2", {kSplitOfQwen2}, false, false, true},
};

// Numbers of kinds in the file; others (normal, unused) are text.
constexpr int64_t kUnknownInFile = 2;
constexpr int64_t kControlInFile = 3;
constexpr int64_t kUserDefinedInFile = 4;
constexpr int64_t kByteInFile = 6;

// Ways to make a token are looked for in the square of its length.
constexpr size_t kMergedBytesMax = 512;

TokenKind KindOf(int64_t number) {
  if (number == kControlInFile || number == kUnknownInFile) return TokenKind::kControl;
  if (number == kUserDefinedInFile) return TokenKind::kUserDefined;
  return number == kByteInFile ? TokenKind::kByte : TokenKind::kText;
}

class GgufTokenizerReader {
 public:
  explicit GgufTokenizerReader(const Gguf& gguf) : gguf_(gguf) {}

  absl::StatusOr<TokenizerParts> Read() {
    const std::string_view kind = gguf_.Text("tokenizer.ggml.model").value_or("");
    const std::optional<std::vector<std::string_view>> tokens =
        gguf_.Texts("tokenizer.ggml.tokens");
    if (kind.empty() || !tokens.has_value())
      return absl::InvalidArgumentError("has no tokenizer; use a file of a whole model");
    if (kind != "gpt2" && kind != "llama")
      return absl::UnimplementedError(
          absl::StrCat("has a tokenizer of kind ", std::string(kind.substr(0, 40)),
                       "; byte-level BPE (gpt2) and SentencePiece (llama) are read"));
    if (gguf_.Bool("tokenizer.ggml.add_eos_token").value_or(false))
      return absl::UnimplementedError("ends each text with a token, which is not supported");
    parts_.tokens.assign(tokens->begin(), tokens->end());
    ReadKinds();
    const absl::Status fine = kind == "gpt2" ? ReadByteLevel() : ReadSentencePiece();
    if (!fine.ok()) return fine;
    return std::move(parts_);
  }

 private:
  void ReadKinds();
  absl::Status ReadByteLevel();
  absl::Status ReadMerges();
  absl::Status ReadSentencePiece();
  absl::Status MakeMergesOfScores();
  void AddMergesOf(const std::string& token, uint32_t rank,
                   const absl::flat_hash_map<std::string_view, bool>& is_text);

  int64_t Number(std::string_view key, int64_t otherwise) const {
    if (!gguf_.Has(key)) return otherwise;
    return static_cast<int64_t>(std::min<uint64_t>(gguf_.Unsigned(key).value_or(INT64_MAX),
                                                   static_cast<uint64_t>(INT64_MAX)));
  }

  const Gguf& gguf_;
  TokenizerParts parts_;
};

void GgufTokenizerReader::ReadKinds() {
  parts_.kinds.assign(parts_.tokens.size(), TokenKind::kText);
  if (!gguf_.Has("tokenizer.ggml.token_type")) return;
  const std::vector<int64_t> kinds =
      gguf_.Integers("tokenizer.ggml.token_type").value_or(std::vector<int64_t>());
  parts_.kinds.clear();
  for (const int64_t number : kinds) {
    const TokenKind kind = KindOf(number);
    if (kind == TokenKind::kControl || kind == TokenKind::kUserDefined)
      parts_.cut.push_back({static_cast<int64_t>(parts_.kinds.size())});
    parts_.kinds.push_back(kind);
  }
}

absl::Status GgufTokenizerReader::ReadMerges() {
  const std::vector<std::string_view> merges =
      gguf_.Texts("tokenizer.ggml.merges").value_or(std::vector<std::string_view>());
  for (const std::string_view merge : merges) {
    const size_t space = merge.find(' ');
    if (space == 0 || space >= merge.size() - 1 || merge.find(' ', space + 1) != merge.npos)
      return absl::InvalidArgumentError("has a merge that is no pair; fetch it again");
    parts_.merges.push_back({std::string(merge.substr(0, space)),
                             std::string(merge.substr(space + 1)),
                             static_cast<uint32_t>(parts_.merges.size())});
  }
  return absl::OkStatus();
}

absl::Status GgufTokenizerReader::ReadByteLevel() {
  const std::string_view pre = gguf_.Text("tokenizer.ggml.pre").value_or("");
  const SplitRow* const row = std::find_if(std::begin(kSplits), std::end(kSplits),
                                           [pre](const SplitRow& is) { return is.name == pre; });
  if (row == std::end(kSplits))
    return absl::UnimplementedError(absl::StrCat("splits text in a way that is not known (",
                                                 std::string(pre.substr(0, 40)), ")"));
  for (const std::string_view stage : row->stages) {
    if (!stage.empty()) parts_.stages.push_back({std::string(stage)});
  }
  if (row->normal_form) parts_.normal.push_back({TextChange::kNfc, "", ""});
  parts_.pairs.whole_pieces = row->whole_pieces;
  if (gguf_.Bool("tokenizer.ggml.add_bos_token").value_or(row->first_if_unsaid))
    parts_.first = Number("tokenizer.ggml.bos_token_id", INT64_MAX);
  return ReadMerges();
}

absl::Status GgufTokenizerReader::ReadSentencePiece() {
  if (gguf_.Bool("tokenizer.ggml.remove_extra_whitespaces").value_or(false))
    return absl::UnimplementedError("has a tokenizer that takes out spaces, not supported");
  const bool marked = gguf_.Bool("tokenizer.ggml.add_space_prefix").value_or(true);
  const std::string mark(kSpaceMark);
  if (marked) parts_.normal.push_back({TextChange::kPrepend, "", mark});
  parts_.normal.push_back({TextChange::kReplace, " ", mark});
  parts_.drops_first_space = marked;
  parts_.pairs = {.byte_level = false, .byte_fallback = true};
  parts_.unknown = Number("tokenizer.ggml.unknown_token_id", 0);
  if (gguf_.Bool("tokenizer.ggml.add_bos_token").value_or(true))
    parts_.first = Number("tokenizer.ggml.bos_token_id", 1);
  return MakeMergesOfScores();
}

absl::Status GgufTokenizerReader::MakeMergesOfScores() {
  const std::vector<double> scores =
      gguf_.Numbers("tokenizer.ggml.scores").value_or(std::vector<double>());
  const auto is_number = [](double score) { return !std::isnan(score); };
  if (scores.size() != parts_.tokens.size() || parts_.kinds.size() != parts_.tokens.size() ||
      !std::all_of(scores.begin(), scores.end(), is_number))
    return absl::InvalidArgumentError("has a tokenizer without a score for each token");
  absl::flat_hash_map<std::string_view, bool> is_text;
  for (size_t i = 0; i < scores.size(); ++i)
    is_text.emplace(parts_.tokens[i], parts_.kinds[i] == TokenKind::kText);
  std::vector<double> ranked = scores;
  std::sort(ranked.begin(), ranked.end(), std::greater<double>());
  ranked.erase(std::unique(ranked.begin(), ranked.end()), ranked.end());
  for (size_t i = 0; i < scores.size(); ++i) {
    if (parts_.kinds[i] != TokenKind::kText || !IsUtf8(parts_.tokens[i])) continue;
    if (parts_.tokens[i].size() > kMergedBytesMax)
      return absl::UnimplementedError(
          absl::StrCat("has a token (number ", i, ") of over ", kMergedBytesMax, " bytes"));
    const auto rank =
        std::lower_bound(ranked.begin(), ranked.end(), scores[i], std::greater<double>());
    AddMergesOf(parts_.tokens[i], static_cast<uint32_t>(rank - ranked.begin()), is_text);
  }
  return absl::OkStatus();
}

// Every way to make the token of two others.
void GgufTokenizerReader::AddMergesOf(const std::string& token, uint32_t rank,
                                      const absl::flat_hash_map<std::string_view, bool>& is_text) {
  const std::string_view all = token;
  const auto known = [&is_text](std::string_view part) {
    const auto found = is_text.find(part);
    return found != is_text.end() && found->second;
  };
  for (size_t at = 0; at < all.size();) {
    at += CharacterBytes(all.substr(at));
    if (at < all.size() && known(all.substr(0, at)) && known(all.substr(at)))
      parts_.merges.push_back({token.substr(0, at), token.substr(at), rank});
  }
}

}  // namespace

absl::StatusOr<TokenizerParts> TokenizerPartsOfGguf(const Gguf& gguf) {
  return GgufTokenizerReader(gguf).Read();
}

}  // namespace serve::llm
