// The JSON header of a safetensors file, as a table of rows whose offsets are not checked yet.
//
// The header is read by events, not as a tree: a tree of 32 MiB of untrusted text could take a
// gigabyte, and would keep the second of two tensors of one name silently.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace serve::llm {

struct SafetensorsRow {
  std::string name;
  std::string type;
  std::vector<uint64_t> shape;    // as the file says it, the last side first to vary
  std::vector<uint64_t> offsets;  // begin and end
};

// Each row has a name that no other has, a type's name, a shape of at most kSafetensorsRankMax
// sides, and two offsets. A failure's message is the end of a sentence that begins with the file's
// name.
absl::StatusOr<std::vector<SafetensorsRow>> ReadSafetensorsHeaderUntrusted(std::string_view header);

}  // namespace serve::llm
