// A front's history as a hostile front may tell it. Whatever is read is told again as it was read,
// and the trace of it is JSON without times before its begin.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/models_trace.h"
#include "serve/history/told_history.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  serve::history::ToldHistory told, again;
  if (!DecodeUntrusted(std::string(reinterpret_cast<const char*>(data), size), &told)) return 0;
  if (!DecodeUntrusted(Encode(told), &again) || again != told) std::abort();
  const cli::TraceSpan window = cli::WindowOf({told});
  const nlohmann::json events = nlohmann::json::parse(
      "[" + cli::ModelsTraceJson({told}, window, window.begin_us) + "]", nullptr, false);
  if (!events.is_array() || events.empty()) std::abort();
  for (const nlohmann::json& event : events) {
    if (event.value("ts", int64_t{0}) < 0 || event.value("dur", int64_t{0}) < 0) std::abort();
  }
  return 0;
}
