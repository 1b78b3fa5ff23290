// A directory of a tiny model of the architecture llama: its files' texts, whole or changed.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "serve/llm/text/byte_letters.h"
#include "tests/serve/llm/format/safetensors_writer.h"

namespace serve::llm {

// One layer of width 32, four heads of 8, two of keys, 48 inner elements, 260 tokens.
inline nlohmann::json TinyConfig() {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"num_hidden_layers", 1},
          {"hidden_size", 32},
          {"intermediate_size", 48},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"max_position_embeddings", 128},
          {"vocab_size", 260}};
}

// 256 bytes, "ab", and the control tokens "<s>" and "</s>": one fewer than the layers know.
inline nlohmann::json TinyTokenizer() {
  nlohmann::json file = nlohmann::json::parse(R"({
    "added_tokens": [{"id": 257, "content": "<s>", "special": true, "normalized": false},
                     {"id": 258, "content": "</s>", "special": true, "normalized": false}],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "merges": ["a b"], "vocab": {"ab": 256}}})");
  for (int byte = 0; byte < 256; ++byte)
    file["model"]["vocab"][LetterOfByte(static_cast<uint8_t>(byte))] = byte;
  return file;
}

inline std::vector<std::pair<std::string, std::vector<uint64_t>>> TinyDirectoryTensors() {
  const std::string layer = "model.layers.0.";
  return {{"lm_head.weight", {260, 32}},
          {"model.embed_tokens.weight", {260, 32}},
          {"model.norm.weight", {32}},
          {layer + "input_layernorm.weight", {32}},
          {layer + "self_attn.q_proj.weight", {32, 32}},
          {layer + "self_attn.k_proj.weight", {16, 32}},
          {layer + "self_attn.v_proj.weight", {16, 32}},
          {layer + "self_attn.o_proj.weight", {32, 32}},
          {layer + "post_attention_layernorm.weight", {32}},
          {layer + "mlp.gate_proj.weight", {48, 32}},
          {layer + "mlp.up_proj.weight", {48, 32}},
          {layer + "mlp.down_proj.weight", {32, 48}}};
}

// All elements are 0.
inline std::string SafetensorsOf(
    const std::vector<std::pair<std::string, std::vector<uint64_t>>>& tensors,
    const std::string& type = "BF16") {
  SafetensorsWriter writer;
  for (const auto& [name, shape] : tensors) {
    size_t bytes = type == "F32" ? 4 : 2;
    for (const uint64_t side : shape) bytes *= side;
    writer.Tensor(name, type, shape, std::string(bytes, '\0'));
  }
  return writer.File();
}

}  // namespace serve::llm
