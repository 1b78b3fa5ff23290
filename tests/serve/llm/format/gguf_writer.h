// Writes small GGUF files for tests, right ones and broken ones: each part is appended as given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "serve/llm/format/gguf.h"

namespace serve::llm {

class GgufWriter {
 public:
  explicit GgufWriter(uint32_t version = 3) : version_(version) {}

  template <typename T>
  static std::string Raw(T value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
  }
  static std::string Text(std::string_view text) {
    return Raw<uint64_t>(text.size()) + std::string(text);
  }

  // A value as its bytes in the file.
  GgufWriter& Key(std::string_view key, GgufType type, const std::string& value) {
    keys_ += Text(key) + Raw(static_cast<uint32_t>(type)) + value;
    ++key_count_;
    return *this;
  }
  GgufWriter& Number(std::string_view key, uint32_t value) {
    return Key(key, GgufType::kUint32, Raw(value));
  }
  GgufWriter& Float(std::string_view key, float value) {
    return Key(key, GgufType::kFloat32, Raw(value));
  }
  GgufWriter& Word(std::string_view key, std::string_view value) {
    return Key(key, GgufType::kText, Text(value));
  }
  GgufWriter& Words(std::string_view key, const std::vector<std::string>& values) {
    std::string bytes = Raw(static_cast<uint32_t>(GgufType::kText)) + Raw<uint64_t>(values.size());
    for (const std::string& value : values) bytes += Text(value);
    return Key(key, GgufType::kArray, bytes);
  }
  GgufWriter& Numbers(std::string_view key, const std::vector<int32_t>& values) {
    std::string bytes = Raw(static_cast<uint32_t>(GgufType::kInt32)) + Raw<uint64_t>(values.size());
    for (const int32_t value : values) bytes += Raw(value);
    return Key(key, GgufType::kArray, bytes);
  }

  // With an entry in the table alone: the bytes are those of Data().
  GgufWriter& Tensor(std::string_view name, const std::vector<uint64_t>& shape, uint32_t type,
                     uint64_t offset) {
    table_ += Text(name) + Raw(static_cast<uint32_t>(shape.size()));
    for (const uint64_t side : shape) table_ += Raw(side);
    table_ += Raw(type) + Raw(offset);
    ++tensor_count_;
    return *this;
  }
  GgufWriter& Data(const std::string& bytes) {
    data_ += bytes;
    return *this;
  }

  std::string File(uint64_t alignment = 32) const {
    std::string file = "GGUF" + Raw(version_) + Raw(tensor_count_) + Raw(key_count_);
    file += keys_ + table_;
    if (!data_.empty()) file.resize((file.size() + alignment - 1) / alignment * alignment);
    return file + data_;
  }

 private:
  uint32_t version_;
  uint64_t key_count_ = 0;
  uint64_t tensor_count_ = 0;
  std::string keys_;
  std::string table_;
  std::string data_;
};

inline std::span<const std::byte> AsBytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// The end of the sentence with which a file is refused; empty: it is read.
inline std::string WhyRefused(const std::string& file) {
  return std::string(DecodeGgufUntrusted(AsBytes(file)).status().message());
}

}  // namespace serve::llm
