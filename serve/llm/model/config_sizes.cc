#include "serve/llm/model/config_sizes.h"

#include <cassert>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "serve/llm/format/refusal.h"
#include "serve/llm/model/config_rope.h"

namespace serve::llm {
namespace {

enum class Window {
  kNever,
  kIfSaid,      // use_sliding_window
  kUnlessNull,  // sliding_window, and a width of its own where the file says nothing
};
constexpr uint64_t kWindowIfUnsaid = 4096;

// What the classes of transformers mean, as their configurations' defaults are.
struct ClassRow {
  std::string_view name;
  std::string_view architecture;
  Window window;
  uint64_t head_width;     // where the file does not say; 0: the width divided among the heads
  bool kv_heads_are_said;  // else as many as heads
  bool tied;               // where the file does not say
};
constexpr ClassRow kClasses[] = {
    {"LlamaForCausalLM", "llama", Window::kNever, 0, false, false},
    {"MistralForCausalLM", "llama", Window::kUnlessNull, 0, true, false},
    {"Qwen2ForCausalLM", "qwen2", Window::kIfSaid, 0, true, false},
    {"Qwen3ForCausalLM", "qwen3", Window::kIfSaid, 128, true, false},
    {"GPT2LMHeadModel", "gpt2", Window::kNever, 0, false, true},
};

// Members that change what is computed wherever they are there.
constexpr const char* kRefusedMembers[] = {"quantization_config", "compression_config", "auto_map"};
// The same, where they are not the value that the layers compute with.
constexpr std::pair<const char*, bool> kTruths[] = {
    {"attention_bias", false},      {"mlp_bias", false},
    {"add_cross_attention", false}, {"scale_attn_by_inverse_layer_idx", false},
    {"is_encoder_decoder", false},  {"scale_attn_weights", true}};
constexpr const char* kExperts[] = {"num_local_experts", "num_experts", "n_routed_experts"};

const ClassRow* FindClass(std::string_view name) {
  for (const ClassRow& row : kClasses) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

std::string ServedClasses() {
  std::vector<std::string> names;
  for (const ClassRow& row : kClasses) names.emplace_back(row.name);
  return absl::StrJoin(names, ", ");
}

// Reads sizes, and keeps the first that is missing or out of bounds.
class ConfigReader {
 public:
  explicit ConfigReader(const Json& config) : config_(config) {}

  uint64_t Size(const char* name, uint64_t max) {
    return Bounded(name, UnsignedOf(config_, name), max);
  }
  uint64_t SizeOr(const char* name, uint64_t otherwise, uint64_t max) {
    return Member(config_, name) != nullptr ? Size(name, max) : Bounded(name, otherwise, max);
  }
  double PositiveOr(const char* name, double otherwise) {
    const std::optional<double> value =
        Member(config_, name) != nullptr ? NumberOf(config_, name) : std::optional(otherwise);
    // Written so that a value that is no number fails, too.
    if (!value.has_value() || !(*value > 0 && *value < 1e12)) Fail(name);
    return value.value_or(1);
  }
  const std::string& fault() const { return fault_; }

 private:
  uint64_t Bounded(const char* name, std::optional<uint64_t> value, uint64_t max) {
    if (value.has_value() && *value != 0 && *value <= max) return *value;
    Fail(name);
    return 1;  // other sizes may be divided by it before the fault is told
  }
  void Fail(const char* name) {
    if (fault_.empty())
      fault_ = absl::StrCat("has no ", name, " that makes sense in its config.json");
  }

  const Json& config_;
  std::string fault_;
};

void ReadGpt2(ConfigReader* reader, ModelSizes* sizes) {
  constexpr uint64_t kInnerOfWidth = 4;  // where n_inner is null
  sizes->layers = reader->Size("n_layer", kLayersMax);
  sizes->width = reader->Size("n_embd", kWidthMax);
  sizes->feed_forward = reader->SizeOr("n_inner", kInnerOfWidth * sizes->width, kWidthMax);
  sizes->heads = reader->Size("n_head", kHeadsMax);
  sizes->kv_heads = sizes->heads;
  sizes->head_width = sizes->width / sizes->heads;
  sizes->context = reader->Size("n_positions", kVocabularyMax);
  sizes->norm_epsilon = reader->PositiveOr("layer_norm_epsilon", 1e-5);
}

void ReadRotating(const ClassRow& row, ConfigReader* reader, ModelSizes* sizes) {
  sizes->layers = reader->Size("num_hidden_layers", kLayersMax);
  sizes->width = reader->Size("hidden_size", kWidthMax);
  sizes->feed_forward = reader->Size("intermediate_size", kWidthMax);
  sizes->heads = reader->Size("num_attention_heads", kHeadsMax);
  sizes->kv_heads = row.kv_heads_are_said
                        ? reader->Size("num_key_value_heads", kHeadsMax)
                        : reader->SizeOr("num_key_value_heads", sizes->heads, kHeadsMax);
  const uint64_t head_width = row.head_width != 0 ? row.head_width : sizes->width / sizes->heads;
  sizes->head_width = reader->SizeOr("head_dim", head_width, kWidthMax);
  sizes->context = reader->Size("max_position_embeddings", kVocabularyMax);
  sizes->norm_epsilon = reader->PositiveOr("rms_norm_eps", 1e-6);
  sizes->rope_width = sizes->head_width;
}

std::string WindowFault(const Json& config, const ClassRow& row, uint64_t context) {
  for (const Json& layer : ArrayOf(config, "layer_types")) {
    const std::string* const type = layer.get_ptr<const std::string*>();
    if (type == nullptr || *type != "full_attention")
      return absl::StrCat("has layers that attend otherwise than fully (",
                          type == nullptr ? "" : Quoted(*type), "), which is not supported");
  }
  if (row.window == Window::kNever) return "";
  if (row.window == Window::kIfSaid && !TruthOf(config, "use_sliding_window").value_or(false))
    return "";
  // null says that there is no window; a file without the member means the default.
  const bool is_null = config.contains("sliding_window") && config["sliding_window"].is_null();
  if (is_null) return "";
  const uint64_t window = UnsignedOf(config, "sliding_window").value_or(kWindowIfUnsaid);
  if (window >= context) return "";
  return absl::StrCat("attends to a window of ", window, " tokens, which is not supported");
}

// Empty: nothing is said that changes what the layers compute.
std::string UnservedMember(const Json& config, const Architecture& architecture) {
  for (const char* const name : kRefusedMembers) {
    if (Member(config, name) != nullptr)
      return absl::StrCat("has ", name, " in its config.json, which is not supported");
  }
  for (const auto& [name, computed] : kTruths) {
    if (Member(config, name) != nullptr && TruthOf(config, name) != computed)
      return absl::StrCat("has ", name, " other than ", computed ? "true" : "false",
                          " in its config.json, which is not supported");
  }
  for (const char* const name : kExperts) {
    if (NumberOf(config, name).value_or(0) > 0)
      return "is a mixture of experts, which is not supported";
  }
  const char* const member = architecture.rotates ? "hidden_act" : "activation_function";
  const std::string_view function = TextOf(config, member);
  const bool is_known = architecture.rotates
                            ? function == "silu" || function == "swish"
                            : function == "gelu_new" || function == "gelu_pytorch_tanh";
  if (Member(config, member) != nullptr && !is_known)
    return absl::StrCat("has the activation ", Quoted(function), ", which is not supported");
  return "";
}

// Of sizes that are each in its bounds.
absl::Status CheckSizes(const ModelSizes& sizes) {
  if (sizes.heads % sizes.kv_heads != 0)
    return absl::InvalidArgumentError(absl::StrCat("has ", sizes.heads, " heads for ",
                                                   sizes.kv_heads, " of keys, which is uneven"));
  if (sizes.head_width == 0 || sizes.rope_width % 2 != 0)
    return absl::InvalidArgumentError(
        absl::StrCat("has heads of ", sizes.head_width, " elements, which makes no sense"));
  return absl::OkStatus();
}

}  // namespace

std::string_view ClassOfConfig(const Json& config) {
  const Json& classes = ArrayOf(config, "architectures");
  const std::string* const name =
      classes.size() == 1 ? classes[0].get_ptr<const std::string*>() : nullptr;
  return name == nullptr ? std::string_view() : std::string_view(*name);
}

// The first of the table: later classes of an architecture may attend to a window.
std::string_view ClassOfArchitecture(const Architecture& architecture) {
  for (const ClassRow& row : kClasses) {
    if (row.architecture == architecture.name) return row.name;
  }
  assert(false);  // each architecture has a row
  return "";
}

absl::StatusOr<ModelSizes> SizesOfConfig(const Json& config) {
  const std::string_view name = ClassOfConfig(config);
  const ClassRow* const row = FindClass(name);
  if (name.empty())
    return absl::InvalidArgumentError(
        "does not say its architecture in its config.json; use the directory of a whole model");
  if (row == nullptr)
    return absl::UnimplementedError(absl::StrCat("is a model of architecture ", Quoted(name),
                                                 "; served are ", ServedClasses()));
  ModelSizes sizes;
  sizes.architecture = FindArchitecture(row->architecture);
  ConfigReader reader(config);
  if (sizes.architecture->rotates)
    ReadRotating(*row, &reader, &sizes);
  else
    ReadGpt2(&reader, &sizes);
  sizes.vocabulary = reader.Size("vocab_size", kVocabularyMax);
  const bool tied = TruthOf(config, "tie_word_embeddings").value_or(row->tied);
  sizes.head = tied ? HeadTensor::kTied : HeadTensor::kOwn;
  if (!reader.fault().empty()) return absl::InvalidArgumentError(reader.fault());
  if (const absl::Status fine = CheckSizes(sizes); !fine.ok()) return fine;
  for (const std::string& fault :
       {UnservedMember(config, *sizes.architecture), WindowFault(config, *row, sizes.context)}) {
    if (!fault.empty()) return absl::UnimplementedError(fault);
  }
  if (!sizes.architecture->rotates) return sizes;
  if (const absl::Status fine = ReadRopeOfConfig(config, &sizes); !fine.ok()) return fine;
  return sizes;
}

}  // namespace serve::llm
