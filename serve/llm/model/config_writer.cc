#include "serve/llm/model/config_writer.h"

#include <string_view>
#include <utility>

#include "serve/llm/format/json_values.h"
#include "serve/llm/model/config_sizes.h"

namespace serve::llm {
namespace {

Json Gpt2Config(const ModelSizes& sizes) {
  return {{"n_layer", sizes.layers},          {"n_embd", sizes.width},
          {"n_inner", sizes.feed_forward},    {"n_head", sizes.heads},
          {"n_positions", sizes.context},     {"layer_norm_epsilon", sizes.norm_epsilon},
          {"activation_function", "gelu_new"}};
}

// The base is written as earlier versions of transformers read it and as later ones do.
Json RotatingConfig(const ModelSizes& sizes) {
  Json rope = {{"rope_type", "default"}, {"rope_theta", sizes.rope_base}};
  if (sizes.rope_width != sizes.head_width)
    rope["partial_rotary_factor"] =
        static_cast<double>(sizes.rope_width) / static_cast<double>(sizes.head_width);
  return {{"num_hidden_layers", sizes.layers},
          {"hidden_size", sizes.width},
          {"intermediate_size", sizes.feed_forward},
          {"num_attention_heads", sizes.heads},
          {"num_key_value_heads", sizes.kv_heads},
          {"head_dim", sizes.head_width},
          {"max_position_embeddings", sizes.context},
          {"rms_norm_eps", sizes.norm_epsilon},
          {"hidden_act", "silu"},
          {"rope_theta", sizes.rope_base},
          {"rope_parameters", std::move(rope)}};
}

// Transformers has GGUF's names for the architectures. For the type qwen2 it takes Qwen's own rules
// of splitting and normalising text, whatever tokenizer.json says, and makes other tokens of a text
// than the server. Llama's configuration has the same sizes, and no such rules.
std::string_view ModelTypeOf(const Architecture& architecture) {
  return architecture.bit == kQwen2 ? FindArchitecture("llama")->name : architecture.name;
}

}  // namespace

std::string ConfigJson(const ModelSizes& sizes, const ConfigFacts& facts) {
  const Architecture& architecture = *sizes.architecture;
  Json config = architecture.rotates ? RotatingConfig(sizes) : Gpt2Config(sizes);
  config["architectures"] = {ClassOfArchitecture(architecture)};
  config["model_type"] = ModelTypeOf(architecture);
  config["vocab_size"] = sizes.vocabulary;
  config["tie_word_embeddings"] = facts.tied;
  // Null is said, too: without the member the class's own numbers count, which may be no tokens.
  config["bos_token_id"] = facts.first.has_value() ? Json(*facts.first) : Json();
  config["eos_token_id"] = facts.ends.empty() ? Json() : Json(facts.ends);
  if (facts.ends.size() == 1) config["eos_token_id"] = facts.ends[0];
  return config.dump();
}

}  // namespace serve::llm
