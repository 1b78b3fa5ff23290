// How positions rotate, as a config.json says it. Thread safety: functions without state.
#pragma once

#include "absl/status/status.h"
#include "serve/llm/format/json_values.h"
#include "serve/llm/model/architecture.h"

namespace serve::llm {

// Sets rope_base, and rope_factors where the kind of scaling is Llama 3's. Other kinds are refused
// by name. REQUIRES: sizes->rope_width is set. A failure's message is the end of a sentence that
// begins with the directory's name.
absl::Status ReadRopeOfConfig(const Json& config, ModelSizes* sizes);

}  // namespace serve::llm
