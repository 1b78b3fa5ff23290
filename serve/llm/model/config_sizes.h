// A model's sizes from the config.json of its directory, as the package transformers writes it.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "serve/llm/format/json_values.h"
#include "serve/llm/model/architecture.h"

namespace serve::llm {

// The class that the file names ("LlamaForCausalLM"); empty: none, or more than one.
std::string_view ClassOfConfig(const Json& config);

// The class whose layers are those of the architecture ("LlamaForCausalLM").
std::string_view ClassOfArchitecture(const Architecture& architecture);

// Whatever would change what the layers compute and is not read is refused by its name. A
// failure's message is the end of a sentence that begins with the directory's name.
absl::StatusOr<ModelSizes> SizesOfConfig(const Json& config);

}  // namespace serve::llm
