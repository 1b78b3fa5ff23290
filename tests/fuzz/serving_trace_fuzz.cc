// Traces of requests and tables of costs for `laneway sim serving`: any text is parsed or refused.
// Parsed requests keep to their bounds, and a parsed table gives every step a time.
#include <cassert>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "cli/sim/serving/costs.h"
#include "cli/sim/serving/requests_trace.h"

namespace {

using scheduler::batching::iteration::Row;
using scheduler::batching::iteration::Step;

void CheckRequests(std::string_view text) {
  const auto requests = sim::serving::ParseRequests(text, "trace");
  if (!requests.ok()) return;
  int64_t last_us = 0;
  for (const sim::serving::TracedRequest& request : *requests) {
    assert(request.arrival_us >= last_us);
    last_us = request.arrival_us;
    assert(request.prompt_tokens >= 1 && request.answer_tokens >= 1);
    assert(request.prompt_tokens + request.answer_tokens <= sim::serving::kTokensMax);
  }
}

void CheckCosts(std::string_view text) {
  const auto costs = sim::serving::Costs::Parse(text, "costs");
  if (!costs.ok()) return;
  Row prompt, answer;
  prompt.count = 1000;
  answer.count = 1;
  for (const Step& step : {Step{.rows = {answer}}, Step{.rows = {prompt}},
                           Step{.rows = {prompt, answer}, .padding = 1 << 20}}) {
    const double ms = costs->StepMs(step);
    assert(ms >= 0 && std::isfinite(ms));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CheckRequests(text);
  CheckCosts(text);
  return 0;
}
