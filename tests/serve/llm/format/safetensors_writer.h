// Writes small safetensors files for tests, right ones and broken ones.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/serve/llm/format/gguf_writer.h"

namespace serve::llm {

class SafetensorsWriter {
 public:
  // A member of the header as it is.
  SafetensorsWriter& Member(const std::string& text) {
    absl::StrAppend(&header_, header_.empty() ? "" : ",", text);
    return *this;
  }
  // `bytes` begin where the file's end is.
  SafetensorsWriter& Tensor(const std::string& name, const std::string& type,
                            const std::vector<uint64_t>& shape, const std::string& bytes) {
    const size_t begin = data_.size();
    data_ += bytes;
    return Row(name, type, shape, begin, data_.size());
  }
  // An entry of the header alone.
  SafetensorsWriter& Row(const std::string& name, const std::string& type,
                         const std::vector<uint64_t>& shape, uint64_t begin, uint64_t end) {
    return Member(absl::StrCat("\"", name, "\":{\"dtype\":\"", type, "\",\"shape\":[",
                               absl::StrJoin(shape, ","), "],\"data_offsets\":[", begin, ",", end,
                               "]}"));
  }
  SafetensorsWriter& Data(const std::string& bytes) {
    data_ += bytes;
    return *this;
  }

  std::string File() const { return Of("{" + header_ + "}", data_); }
  static std::string Of(const std::string& header, const std::string& data) {
    return GgufWriter::Raw<uint64_t>(header.size()) + header + data;
  }

 private:
  std::string header_;
  std::string data_;
};

}  // namespace serve::llm
