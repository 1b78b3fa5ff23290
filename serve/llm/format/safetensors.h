// Safetensors files: tensors and their names, nothing else of a model.
//
//     the header's bytes       u64
//     the header               a JSON object, perhaps with spaces behind it
//         "NAME": {"dtype": TEXT, "shape": [sides], "data_offsets": [begin, end]}
//         "__metadata__": {TEXT: TEXT}
//     the tensors' bytes       offsets count from here
//
// The last side of a shape is the one whose elements lie side by side. The tensors' bytes lie one
// behind the other: the format permits no bytes of none and none of two, so that a file has one
// reading. The format is that of https://github.com/huggingface/safetensors (README, "Format").
//
// The decoder is the one door for these files, which come from anywhere. After it each tensor has
// a known type, and bytes in the file that are its alone. Texts of the metadata are not kept.
// Whether the tensors make a model is not decided here.
//
// Tensors point into the bytes that they were decoded from: these must outlive them.
// Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "serve/llm/format/tensor.h"

namespace serve::llm {

inline constexpr uint64_t kSafetensorsHeaderBytesMax = uint64_t{32} << 20;
inline constexpr size_t kSafetensorsTensorsMax = 1 << 16;
inline constexpr size_t kSafetensorsNameBytesMax = 256;
inline constexpr size_t kSafetensorsRankMax = 8;

// A failure's message is the end of a sentence that begins with the file's name.
absl::StatusOr<TensorSet> DecodeSafetensorsUntrusted(std::span<const std::byte> file);

// The types of safetensors files. Null: the format has no type of this name.
const TensorType* FindSafetensorsType(std::string_view name);

}  // namespace serve::llm
