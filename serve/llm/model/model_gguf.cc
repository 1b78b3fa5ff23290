// A model of a single GGUF file.
#include <optional>

#include "absl/strings/str_cat.h"
#include "serve/llm/model/model.h"
#include "serve/llm/model/text_of_model.h"

namespace serve::llm {
namespace {

// What a file of SentencePiece means that does not say its end.
constexpr uint64_t kEndOfSentencePiece = 2;

// Ends of a text, of a turn and of a message to a program.
constexpr const char* kEndKeys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                    "tokenizer.ggml.eom_token_id"};

std::string TokenizerKindOf(const Gguf& gguf) {
  const std::string kind(gguf.Text("tokenizer.ggml.model").value_or(""));
  const std::string split(gguf.Text("tokenizer.ggml.pre").value_or(""));
  return kind.empty() || split.empty() ? kind : absl::StrCat(kind, " (", split, ")");
}

// Empty: the file names no such token, or one that is none of its own.
std::string BytesOf(const Gguf& gguf, std::string_view key, std::optional<uint64_t> otherwise,
                    const Tokenizer& tokenizer) {
  const std::optional<uint64_t> token = gguf.Has(key) ? gguf.Unsigned(key) : otherwise;
  if (!token.has_value() || *token >= tokenizer.size()) return "";
  return std::string(tokenizer.BytesOf(static_cast<int32_t>(*token)));
}

absl::StatusOr<ModelText> TextOf(const Gguf& gguf, const Tokenizer& tokenizer) {
  std::optional<uint64_t> end_if_unsaid;
  if (gguf.Text("tokenizer.ggml.model") == "llama") end_if_unsaid = kEndOfSentencePiece;
  const std::optional<uint64_t> first(tokenizer.first());
  ModelText text;
  text.chat_template = gguf.Text("tokenizer.chat_template").value_or("");
  text.first_token = BytesOf(gguf, "tokenizer.ggml.bos_token_id", first, tokenizer);
  text.end_token = BytesOf(gguf, kEndKeys[0], end_if_unsaid, tokenizer);
  std::vector<uint64_t> ends;
  for (const char* const key : kEndKeys) {
    // A value that is no number is none of the tokens.
    if (gguf.Has(key)) ends.push_back(gguf.Unsigned(key).value_or(UINT64_MAX));
  }
  if (!gguf.Has(kEndKeys[0]) && end_if_unsaid.has_value() && *end_if_unsaid < tokenizer.size())
    ends.push_back(*end_if_unsaid);
  return TextWithEnds(std::move(text), std::move(ends), tokenizer);
}

}  // namespace

Model ModelOfGguf(const Gguf& gguf) {
  Model model;
  model.format = "gguf";
  model.version = gguf.version();
  model.architecture = gguf.Text("general.architecture").value_or("");
  model.name = gguf.Text("general.name").value_or("");
  model.tokenizer_kind = TokenizerKindOf(gguf);
  model.sizes = SizesOf(gguf);
  model.file_tensors = gguf.tensors();
  if (model.sizes.ok())
    model.tensors = ModelTensors(model.file_tensors, TensorNames::kGguf, *model.sizes);
  model.tokenizer = FitTokenizer(Tokenizer::OfGguf(gguf), model.sizes);
  if (model.tokenizer.ok()) model.text = TextOf(gguf, *model.tokenizer);
  return model;
}

}  // namespace serve::llm
