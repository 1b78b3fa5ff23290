#include "cli/models_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/table.h"

namespace cli {
namespace {

using Json = nlohmann::json;

std::string TextOf(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? Printable(found->get<std::string>()) : "";
}

double FigureOf(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

std::string Whole(const Json& object, const char* name) {
  return absl::StrFormat("%.0f", FigureOf(object, name));
}

std::string Share(double part, double whole) {
  return whole <= 0 ? "-" : absl::StrFormat("%.0f %%", 100 * part / whole);
}

std::string StateText(const Json& model) {
  const std::string state = TextOf(model, "state");
  return model.contains("loaded") ? absl::StrCat(state, " ", Share(FigureOf(model, "loaded"), 1))
                                  : state;
}

}  // namespace

std::string ModelsText(const Json& models) {
  Rows rows = {{"MODEL", "STATE", "URL", "PID", "RUNNING", "WAITING", "TOKENS/S", "TOKENS",
                "KV MEMORY", "CACHED", "PREEMPTED", "RESTARTS"}};
  for (const Json& model : models) {
    if (!model.is_object()) continue;
    rows.push_back(
        {TextOf(model, "id"), StateText(model), TextOf(model, "url"), Whole(model, "pid"),
         Whole(model, "running"), Whole(model, "waiting"),
         absl::StrFormat("%.1f", FigureOf(model, "tokens_per_second")),
         Whole(model, "generated_tokens"),
         Share(FigureOf(model, "kv_blocks_used"), FigureOf(model, "kv_blocks")),
         Share(FigureOf(model, "prefix_hit_tokens"), FigureOf(model, "prefix_query_tokens")),
         Whole(model, "preemptions"), Whole(model, "engine_restarts")});
  }
  return rows.size() == 1 ? "" : Table(rows, 3);
}

std::string RequestsText(const Json& answer) {
  std::string text;
  const auto requests = answer.find("requests");
  if (requests == answer.end() || !requests->is_array()) return text;
  for (const Json& request : *requests) {
    if (!request.is_object()) continue;
    absl::StrAppend(&text, TextOf(request, "id"), " (", TextOf(request, "model"), ", for ",
                    TimeText(static_cast<uint64_t>(FigureOf(request, "age_us"))), ") ",
                    TextOf(request, "why"), "\n");
  }
  if (FigureOf(answer, "left_out") >= 1)
    absl::StrAppend(&text, "and ", Whole(answer, "left_out"), " requests that came later\n");
  return text;
}

}  // namespace cli
