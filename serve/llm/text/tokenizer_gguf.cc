// A tokenizer from a GGUF file's metadata. The file names how text is split ("pre"), and readers
// know the expressions by that name.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "serve/llm/text/tokenizer.h"

namespace serve::llm {
namespace {

constexpr std::string_view kDigitEach = R"(\p{N})";
constexpr std::string_view kOfGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kOfLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kOfQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct SplitRow {
  std::string_view name;  // tokenizer.ggml.pre
  std::string_view stages[2];
  bool whole_pieces;
  bool first_if_unsaid;  // whether a text has a first token when the file does not say
};
constexpr SplitRow kSplits[] = {
    {"gpt-2", {kOfGpt2}, false, false},
    {"gpt2", {kOfGpt2}, false, false},
    {"smollm", {kDigitEach, kOfGpt2}, false, false},
    {"starcoder", {kDigitEach, kOfGpt2}, false, false},
    {"llama-bpe", {kOfLlama3}, true, true},
    {"llama3", {kOfLlama3}, true, true},
    {"qwen2", {kOfQwen2}, false, false},
};

// Numbers of kinds in the file. Others (unknown, unused, bytes) are text here.
constexpr int64_t kControlInFile = 3;
constexpr int64_t kUserDefinedInFile = 4;

TokenKind KindOf(int64_t number) {
  if (number == kControlInFile) return TokenKind::kControl;
  return number == kUserDefinedInFile ? TokenKind::kUserDefined : TokenKind::kText;
}

absl::Status AddMerges(const std::vector<std::string_view>& merges, TokenizerParts* parts) {
  for (const std::string_view merge : merges) {
    const size_t space = merge.find(' ');
    if (space == 0 || space >= merge.size() - 1 || merge.find(' ', space + 1) != merge.npos)
      return absl::InvalidArgumentError("has a merge that is no pair; fetch it again");
    parts->merges.emplace_back(merge.substr(0, space), merge.substr(space + 1));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Tokenizer> Tokenizer::OfGguf(const Gguf& gguf) {
  const std::string_view kind = gguf.Text("tokenizer.ggml.model").value_or("");
  const std::optional<std::vector<std::string_view>> tokens = gguf.Texts("tokenizer.ggml.tokens");
  if (kind.empty() || !tokens.has_value())
    return absl::InvalidArgumentError("has no tokenizer; use a file of a whole model");
  if (kind != "gpt2")
    return absl::UnimplementedError(absl::StrCat("has a tokenizer of kind ",
                                                 std::string(kind.substr(0, 40)),
                                                 "; byte-level BPE (gpt2) is read"));
  const std::string_view pre = gguf.Text("tokenizer.ggml.pre").value_or("");
  const SplitRow* const row = std::find_if(std::begin(kSplits), std::end(kSplits),
                                           [pre](const SplitRow& is) { return is.name == pre; });
  if (row == std::end(kSplits))
    return absl::UnimplementedError(absl::StrCat("splits text in a way that is not known (",
                                                 std::string(pre.substr(0, 40)), ")"));
  TokenizerParts parts;
  parts.tokens.assign(tokens->begin(), tokens->end());
  parts.kinds.assign(tokens->size(), TokenKind::kText);
  if (gguf.Has("tokenizer.ggml.token_type")) {
    const std::vector<int64_t> kinds =
        gguf.Integers("tokenizer.ggml.token_type").value_or(std::vector<int64_t>());
    parts.kinds.clear();
    for (const int64_t number : kinds) parts.kinds.push_back(KindOf(number));
  }
  const absl::Status merges = AddMerges(
      gguf.Texts("tokenizer.ggml.merges").value_or(std::vector<std::string_view>()), &parts);
  if (!merges.ok()) return merges;
  for (const std::string_view stage : row->stages) {
    if (!stage.empty()) parts.stages.push_back({std::string(stage)});
  }
  parts.whole_pieces = row->whole_pieces;
  if (gguf.Bool("tokenizer.ggml.add_bos_token").value_or(row->first_if_unsaid))
    parts.first =
        static_cast<int64_t>(gguf.Unsigned("tokenizer.ggml.bos_token_id").value_or(INT64_MAX));
  return MakeUntrusted(std::move(parts));
}

}  // namespace serve::llm
