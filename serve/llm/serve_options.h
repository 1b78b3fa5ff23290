// From what people say about serving (serve_flags.h) and a model to what its generator takes.
//
// Thread safety: main().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "serve/llm/generation/engine_generator.h"
#include "serve/llm/model/model.h"
#include "serve/llm/serve_flags.h"

namespace serve::llm {

// "512MiB", "2GiB", "1000000": bytes. 0: is none of these.
uint64_t BytesOf(const std::string& text);

// What generating by the model at this path takes. Fails with a sentence where an option makes no
// sense, or the model has no sizes. `engine_command`: the program, and what makes it an engine.
absl::StatusOr<EngineGeneratorOptions> OptionsForModel(const ServeOptions& options,
                                                       const std::string& path, const Model& model,
                                                       std::vector<std::string> engine_command);

}  // namespace serve::llm
