// Bodies of requests from anywhere, at each route. An accepted body has the fields of its route,
// and becomes requests within the bounds of the model.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "serve/openai/prepare.h"
#include "tests/serve/openai/scripted_model.h"

namespace {

void Check(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace openai = serve::openai;
  static const openai::ScriptedModel& model = *new openai::ScriptedModel([](const std::string&) {});
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  for (const openai::Route route :
       {openai::kCompletions, openai::kChat, openai::kTokenize, openai::kDetokenize}) {
    const auto parsed = openai::ParseBodyUntrusted(body, route);
    if (const auto* error = std::get_if<openai::Error>(&parsed)) {
      Check(error->status == 400 && !error->message.empty());
      (void)openai::JsonOf(*error);
      continue;
    }
    if (route == openai::kTokenize || route == openai::kDetokenize) continue;
    const openai::Fields& fields = std::get<openai::Parsed>(parsed).fields;
    const auto prepared = openai::Prepare(fields, route, model, 1);
    if (std::holds_alternative<openai::Error>(prepared)) continue;
    for (const auto& request : std::get<openai::Prepared>(prepared).requests) {
      const auto tokens = static_cast<int32_t>(request.prompt.size());
      Check(tokens > 0 && request.new_max >= 0 && tokens + request.new_max <= model.context());
      for (const int32_t token : request.prompt) Check(token >= 0 && token < model.vocabulary());
      for (const int32_t token : request.sampling.stop_tokens) Check(token < model.vocabulary());
    }
  }
  return 0;
}
