// A file of a tiny model of the architecture llama, whole or with parts left out.
#pragma once

#include <string>
#include <vector>

#include "tests/serve/llm/format/gguf_writer.h"

namespace serve::llm {

struct TinyTensor {
  std::string name;
  std::vector<uint64_t> shape;
  uint32_t type = 0;  // F32
};

// One layer of width 32, four heads of 8, two of keys, 48 inner elements, three tokens.
inline std::vector<TinyTensor> TinyTensors() {
  return {{"token_embd.weight", {32, 3}},         {"output_norm.weight", {32}},
          {"blk.0.attn_norm.weight", {32}},       {"blk.0.attn_q.weight", {32, 32}, 8},
          {"blk.0.attn_k.weight", {32, 16}},      {"blk.0.attn_v.weight", {32, 16}},
          {"blk.0.attn_output.weight", {32, 32}}, {"blk.0.ffn_norm.weight", {32}},
          {"blk.0.ffn_gate.weight", {32, 48}},    {"blk.0.ffn_up.weight", {32, 48}},
          {"blk.0.ffn_down.weight", {48, 32}}};
}

inline GgufWriter TinySizes(const std::string& architecture = "llama") {
  GgufWriter writer;
  writer.Word("general.architecture", architecture).Word("general.name", "tiny");
  const std::pair<const char*, uint32_t> sizes[] = {
      {".block_count", 1},          {".embedding_length", 32},       {".feed_forward_length", 48},
      {".attention.head_count", 4}, {".attention.head_count_kv", 2}, {".context_length", 128}};
  for (const auto& [key, size] : sizes) writer.Number(architecture + key, size);
  return writer;
}

inline GgufWriter WithTokenizer(GgufWriter writer) {
  return writer.Word("tokenizer.ggml.model", "gpt2")
      .Word("tokenizer.ggml.pre", "smollm")
      .Words("tokenizer.ggml.tokens", {"a", "b", "ab"});
}

inline std::string FileOf(GgufWriter writer, const std::vector<TinyTensor>& tensors) {
  std::string data;
  for (const TinyTensor& tensor : tensors) {
    uint64_t elements = 1;
    for (const uint64_t side : tensor.shape) elements *= side;
    const TensorType& type = *FindTensorType(tensor.type);
    writer.Tensor(tensor.name, tensor.shape, tensor.type, data.size());
    data.append(elements / type.block_elements * type.block_bytes, '\0');
    data.resize((data.size() + 31) / 32 * 32);
  }
  return writer.Data(data).File();
}

inline std::string TinyModel() { return FileOf(WithTokenizer(TinySizes()), TinyTensors()); }

}  // namespace serve::llm
