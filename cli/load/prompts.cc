#include "cli/load/prompts.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace load {
namespace {

using sim::serving::kHashTokens;

// For each token of the prompt a number below `size`.
std::vector<size_t> Draw(const sim::serving::TracedRequest& request, size_t size,
                         sim::Random* random) {
  const auto tokens = static_cast<size_t>(request.prompt_tokens);
  std::vector<size_t> drawn;
  for (const int64_t id : request.hash_ids) {
    sim::Random block(static_cast<uint64_t>(id));
    for (int64_t i = 0; i < kHashTokens && drawn.size() < tokens; ++i) {
      drawn.push_back(block.Index(size));
    }
  }
  while (drawn.size() < tokens) drawn.push_back(random->Index(size));
  return drawn;
}

}  // namespace

const std::string& SomeWords() {
  static const std::string words =
      "water river stone bridge morning light garden window table letter paper music winter summer "
      "mountain valley harbour island market village teacher farmer doctor sailor brother sister "
      "mother father child horse apple bread butter sugar salt silver gold iron copper glass wood "
      "cotton leather engine wheel railway station ticket journey distance measure number question "
      "answer reason story history science nature animal plant flower forest desert ocean weather "
      "thunder shadow mirror candle kitchen chimney carpet basket bottle hammer needle pencil "
      "picture colour yellow green purple orange circle square triangle corner border country";
  return words;
}

std::string BodyOf(const sim::serving::TracedRequest& request, const BodyPlan& plan,
                   sim::Random* random) {
  const std::vector<std::string> words = absl::StrSplit(SomeWords(), ' ');
  nlohmann::json body = {{"model", plan.model},
                         {"max_tokens", request.answer_tokens},
                         {"temperature", 0},
                         {"stream", true},
                         {"stream_options", {{"include_usage", true}}}};
  if (plan.ignore_eos) body["ignore_eos"] = true;
  const bool as_ids = !plan.chat && !plan.ids.empty();
  const std::vector<size_t> drawn = Draw(request, as_ids ? plan.ids.size() : words.size(), random);
  if (as_ids) {
    nlohmann::json& prompt = body["prompt"] = nlohmann::json::array();
    for (const size_t at : drawn) prompt.push_back(plan.ids[at]);
    return body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  const std::string text =
      absl::StrJoin(drawn, " ", [&words](std::string* out, size_t at) { *out += words[at]; });
  if (plan.chat) {
    body["messages"] = nlohmann::json::array({{{"role", "user"}, {"content", text}}});
  } else {
    body["prompt"] = text;
  }
  return body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace load
