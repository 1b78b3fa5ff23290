#include "serve/llm/model/architecture.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "serve/llm/format/refusal.h"

namespace serve::llm {
namespace {

constexpr Architecture kArchitectures[] = {
    {"llama", kLlama, true},
    {"qwen2", kQwen2, true},
    {"qwen3", kQwen3, true},
    {"gpt2", kGpt2, false},
};

// Reads keys below the architecture's name, and keeps the first that is missing or out of bounds.
class SizeReader {
 public:
  SizeReader(const Gguf& gguf, std::string_view prefix) : gguf_(gguf), prefix_(prefix) {}

  std::string Name(std::string_view key) const {
    return absl::StrCat(prefix_, ".", std::string(key));
  }
  uint64_t Size(std::string_view key, uint64_t max) {
    return Bounded(key, gguf_.Unsigned(Name(key)), max);
  }
  uint64_t SizeOr(std::string_view key, uint64_t otherwise, uint64_t max) {
    return gguf_.Has(Name(key)) ? Size(key, max) : Bounded(key, otherwise, max);
  }
  double PositiveOr(std::string_view key, double otherwise) {
    const std::optional<double> value =
        gguf_.Has(Name(key)) ? gguf_.Number(Name(key)) : std::optional<double>(otherwise);
    // Written so that a value that is no number fails, too.
    if (!value.has_value() || !(*value > 0 && *value < 1e12)) Fail(key);
    return value.value_or(0);
  }
  const std::string& fault() const { return fault_; }

 private:
  uint64_t Bounded(std::string_view key, std::optional<uint64_t> value, uint64_t max) {
    if (value.has_value() && *value != 0 && *value <= max) return *value;
    Fail(key);
    return 1;  // other sizes may be divided by it before the fault is told
  }
  void Fail(std::string_view key) {
    if (fault_.empty()) fault_ = absl::StrCat("has no ", Name(key), " that makes sense");
  }

  const Gguf& gguf_;
  const std::string prefix_;
  std::string fault_;
};

// Empty: nothing is said that changes what the layers compute.
std::string UnservedFeature(const Gguf& gguf, const SizeReader& reader, uint64_t context) {
  const std::optional<std::string_view> scaling = gguf.Text(reader.Name("rope.scaling.type"));
  if (scaling.has_value() && *scaling != "none")
    return absl::StrCat("scales its positions (", Quoted(*scaling), "), which is not supported");
  const uint64_t window = gguf.Unsigned(reader.Name("attention.sliding_window")).value_or(0);
  if (window != 0 && window < context)
    return absl::StrCat("attends to a window of ", window, " tokens, which is not supported");
  if (gguf.Unsigned(reader.Name("expert_count")).value_or(0) > 0)
    return "is a mixture of experts, which is not supported";
  const uint64_t parts = gguf.Unsigned("split.count").value_or(0);
  if (parts > 1) return absl::StrCat("is one of ", parts, " parts; merge them into one file");
  return "";
}

// The vocabulary is as long as its list of tokens, or as a key says in files that have no list.
uint64_t VocabularyOf(const Gguf& gguf, SizeReader* reader) {
  const std::optional<std::vector<std::string_view>> tokens = gguf.Texts("tokenizer.ggml.tokens");
  if (tokens.has_value() && !tokens->empty() && tokens->size() <= kVocabularyMax)
    return tokens->size();
  return reader->Size("vocab_size", kVocabularyMax);
}

}  // namespace

const Architecture* FindArchitecture(std::string_view name) {
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.name == name) return &architecture;
  }
  return nullptr;
}

std::string ServedArchitectures() {
  std::vector<std::string> names;
  for (const Architecture& architecture : kArchitectures) names.emplace_back(architecture.name);
  return absl::StrJoin(names, ", ");
}

absl::StatusOr<ModelSizes> SizesOf(const Gguf& gguf) {
  const std::optional<std::string_view> name = gguf.Text("general.architecture");
  if (!name.has_value())
    return absl::InvalidArgumentError("does not say its architecture; use a file of a whole model");
  ModelSizes sizes;
  sizes.architecture = FindArchitecture(*name);
  if (sizes.architecture == nullptr)
    return absl::UnimplementedError(absl::StrCat("is a model of architecture ", Quoted(*name),
                                                 "; served are ", ServedArchitectures()));
  SizeReader reader(gguf, *name);
  sizes.layers = reader.Size("block_count", kLayersMax);
  sizes.width = reader.Size("embedding_length", kWidthMax);
  sizes.feed_forward = reader.Size("feed_forward_length", kWidthMax);
  sizes.heads = reader.Size("attention.head_count", kHeadsMax);
  sizes.kv_heads = reader.SizeOr("attention.head_count_kv", sizes.heads, kHeadsMax);
  sizes.head_width = reader.SizeOr("attention.key_length", sizes.width / sizes.heads, kWidthMax);
  sizes.vocabulary = VocabularyOf(gguf, &reader);
  sizes.context = reader.Size("context_length", kVocabularyMax);
  if (sizes.architecture->rotates) {
    sizes.norm_epsilon = reader.PositiveOr("attention.layer_norm_rms_epsilon", 1e-5);
    sizes.rope_base = reader.PositiveOr("rope.freq_base", 10000);
    sizes.rope_width = reader.SizeOr("rope.dimension_count", sizes.head_width, sizes.head_width);
  } else {
    sizes.norm_epsilon = reader.PositiveOr("attention.layer_norm_epsilon", 1e-5);
  }
  if (!reader.fault().empty()) return absl::InvalidArgumentError(reader.fault());
  if (sizes.heads % sizes.kv_heads != 0)
    return absl::InvalidArgumentError(absl::StrCat("has ", sizes.heads, " heads for ",
                                                   sizes.kv_heads, " of keys, which is uneven"));
  // Rotation turns pairs of elements.
  if (sizes.rope_width % 2 != 0)
    return absl::InvalidArgumentError(absl::StrCat("rotates ", sizes.rope_width, " elements"));
  const uint64_t values = reader.SizeOr("attention.value_length", sizes.head_width, kWidthMax);
  if (values != sizes.head_width)
    return absl::UnimplementedError("has values of another width than keys, not supported");
  if (const std::string feature = UnservedFeature(gguf, reader, sizes.context); !feature.empty())
    return absl::UnimplementedError(feature);
  return sizes;
}

}  // namespace serve::llm
