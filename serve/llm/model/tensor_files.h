// The tensors of a model's directory, which may be in several files.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "serve/llm/format/mapped_file.h"
#include "serve/llm/format/tensor.h"

namespace serve::llm {

inline constexpr size_t kTensorIndexBytesMax = size_t{16} << 20;

// The file of each tensor: the decoded weight_map of model.safetensors.index.json.
using TensorIndex = absl::flat_hash_map<std::string, std::string>;

// Files are named without a directory, so that an index leads to nothing outside of its own. A
// failure's message is the end of a sentence that begins with the file's name.
absl::StatusOr<TensorIndex> DecodeTensorIndexUntrusted(std::string_view json);

struct TensorFiles {
  std::vector<MappedFile> files;
  TensorSet tensors;
};

// A failure is a sentence with the path in it.
absl::StatusOr<TensorFiles> OpenTensorFilesUntrusted(const std::string& directory);

}  // namespace serve::llm
