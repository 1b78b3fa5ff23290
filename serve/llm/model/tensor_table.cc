#include "serve/llm/model/tensor_table.h"

#include "absl/strings/str_cat.h"

namespace serve::llm {
namespace {

constexpr uint32_t kRotating = kLlama | kQwen2 | kQwen3;
constexpr uint32_t kAll = kRotating | kGpt2;

constexpr TensorRow kTensors[] = {
    {kAll, false, false, "token_embd.weight", "model.embed_tokens.weight", "wte.weight",
     TensorUse::kPlain, Side::kWidth, Side::kVocabulary},
    {kGpt2, false, false, "position_embd.weight", "", "wpe.weight", TensorUse::kPlain, Side::kWidth,
     Side::kContext},
    {kAll, false, false, "output_norm.weight", "model.norm.weight", "ln_f.weight",
     TensorUse::kPlain, Side::kWidth, Side::kNone},
    {kGpt2, false, false, "output_norm.bias", "", "ln_f.bias", TensorUse::kPlain, Side::kWidth,
     Side::kNone},
    {kAll, false, true, "output.weight", "lm_head.weight", "lm_head.weight", TensorUse::kHead,
     Side::kWidth, Side::kVocabulary},
    {kLlama, false, true, "rope_freqs.weight", "", "", TensorUse::kPlain, Side::kTurns,
     Side::kNone},
    {kAll, true, false, "attn_norm.weight", "input_layernorm.weight", "ln_1.weight",
     TensorUse::kPlain, Side::kWidth, Side::kNone},
    {kGpt2, true, false, "attn_norm.bias", "", "ln_1.bias", TensorUse::kPlain, Side::kWidth,
     Side::kNone},
    {kRotating, true, false, "attn_q.weight", "self_attn.q_proj.weight", "", TensorUse::kRotated,
     Side::kWidth, Side::kQueries},
    {kRotating, true, false, "attn_k.weight", "self_attn.k_proj.weight", "", TensorUse::kRotated,
     Side::kWidth, Side::kKeys},
    {kRotating, true, false, "attn_v.weight", "self_attn.v_proj.weight", "", TensorUse::kPlain,
     Side::kWidth, Side::kKeys},
    {kQwen2, true, false, "attn_q.bias", "self_attn.q_proj.bias", "", TensorUse::kPlain,
     Side::kQueries, Side::kNone},
    {kQwen2, true, false, "attn_k.bias", "self_attn.k_proj.bias", "", TensorUse::kPlain,
     Side::kKeys, Side::kNone},
    {kQwen2, true, false, "attn_v.bias", "self_attn.v_proj.bias", "", TensorUse::kPlain,
     Side::kKeys, Side::kNone},
    {kQwen3, true, false, "attn_q_norm.weight", "self_attn.q_norm.weight", "", TensorUse::kPlain,
     Side::kHead, Side::kNone},
    {kQwen3, true, false, "attn_k_norm.weight", "self_attn.k_norm.weight", "", TensorUse::kPlain,
     Side::kHead, Side::kNone},
    {kGpt2, true, false, "attn_qkv.weight", "", "attn.c_attn.weight", TensorUse::kProduct,
     Side::kWidth, Side::kQkv},
    {kGpt2, true, false, "attn_qkv.bias", "", "attn.c_attn.bias", TensorUse::kPlain, Side::kQkv,
     Side::kNone},
    {kAll, true, false, "attn_output.weight", "self_attn.o_proj.weight", "attn.c_proj.weight",
     TensorUse::kProduct, Side::kQueries, Side::kWidth},
    {kGpt2, true, false, "attn_output.bias", "", "attn.c_proj.bias", TensorUse::kPlain,
     Side::kWidth, Side::kNone},
    {kAll, true, false, "ffn_norm.weight", "post_attention_layernorm.weight", "ln_2.weight",
     TensorUse::kPlain, Side::kWidth, Side::kNone},
    {kGpt2, true, false, "ffn_norm.bias", "", "ln_2.bias", TensorUse::kPlain, Side::kWidth,
     Side::kNone},
    {kRotating, true, false, "ffn_gate.weight", "mlp.gate_proj.weight", "", TensorUse::kPlain,
     Side::kWidth, Side::kInner},
    {kAll, true, false, "ffn_up.weight", "mlp.up_proj.weight", "mlp.c_fc.weight",
     TensorUse::kProduct, Side::kWidth, Side::kInner},
    {kGpt2, true, false, "ffn_up.bias", "", "mlp.c_fc.bias", TensorUse::kPlain, Side::kInner,
     Side::kNone},
    {kAll, true, false, "ffn_down.weight", "mlp.down_proj.weight", "mlp.c_proj.weight",
     TensorUse::kProduct, Side::kInner, Side::kWidth},
    {kGpt2, true, false, "ffn_down.bias", "", "mlp.c_proj.bias", TensorUse::kPlain, Side::kWidth,
     Side::kNone},
};

}  // namespace

std::span<const TensorRow> TensorRows() { return kTensors; }

uint64_t LengthOf(Side side, const ModelSizes& sizes) {
  switch (side) {
    case Side::kNone:
      return 1;
    case Side::kWidth:
      return sizes.width;
    case Side::kVocabulary:
      return sizes.vocabulary;
    case Side::kContext:
      return sizes.context;
    case Side::kQueries:
      return sizes.heads * sizes.head_width;
    case Side::kKeys:
      return sizes.kv_heads * sizes.head_width;
    case Side::kQkv:
      return (sizes.heads + 2 * sizes.kv_heads) * sizes.head_width;
    case Side::kHead:
      return sizes.head_width;
    case Side::kInner:
      return sizes.feed_forward;
    case Side::kTurns:
      return sizes.rope_width / 2;
  }
  return 0;
}

std::string GgufNameOf(const TensorRow& row, uint64_t layer) {
  return row.in_each_layer ? absl::StrCat("blk.", layer, ".", std::string(row.name))
                           : std::string(row.name);
}

std::string TransformersNameOf(const TensorRow& row, const Architecture& architecture,
                               uint64_t layer) {
  const std::string name(architecture.rotates ? row.rotating : row.gpt2);
  if (name.empty() || !row.in_each_layer) return name;
  return absl::StrCat(architecture.rotates ? "model.layers." : "h.", layer, ".", name);
}

// Llama's angles of rotation, GPT-2's masks of causality.
bool IsPassedOver(std::string_view transformers_name, const Architecture& architecture) {
  const auto ends = [transformers_name](std::string_view end) {
    return transformers_name.ends_with(end);
  };
  if (architecture.rotates) return ends(".rotary_emb.inv_freq");
  return ends(".attn.bias") || ends(".attn.masked_bias");
}

}  // namespace serve::llm
