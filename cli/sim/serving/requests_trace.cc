#include "cli/sim/serving/requests_trace.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/sim/random.h"

namespace sim::serving {
namespace {

// "2023-11-16 18:17:03.9799600" in microseconds since 1970.
std::optional<int64_t> TimestampUs(const std::string& text) {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  int hour = 0;
  int minute = 0;
  double second = 0;
  if (std::sscanf(text.c_str(), "%d-%u-%u %d:%d:%lf", &year, &month, &day, &hour, &minute,
                  &second) != 6) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date =
      std::chrono::year(year) / static_cast<int>(month) / static_cast<int>(day);
  const bool legal = date.ok() && year > 1900 && year < 3000 && hour >= 0 && hour < 24 &&
                     minute >= 0 && minute < 60 && second >= 0 && second < 61;
  if (!legal) return std::nullopt;
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return ((days * 24 + hour) * 60 + minute) * 60'000'000 + std::llround(second * 1e6);
}

// Nullopt: not a row of the Azure traces.
std::optional<TracedRequest> AzureRow(const std::string& line) {
  const std::vector<std::string> cells = absl::StrSplit(line, ',');
  TracedRequest request;
  if (cells.size() != 3) return std::nullopt;
  const std::optional<int64_t> at_us = TimestampUs(cells[0]);
  if (!at_us.has_value() || !absl::SimpleAtoi(cells[1], &request.prompt_tokens) ||
      !absl::SimpleAtoi(cells[2], &request.answer_tokens)) {
    return std::nullopt;
  }
  request.arrival_us = *at_us;
  return request;
}

// Nullopt: not a row of Mooncake's traces.
std::optional<TracedRequest> MooncakeRow(const std::string& line) {
  const nlohmann::json row = nlohmann::json::parse(line, nullptr, false);
  if (!row.is_object()) return std::nullopt;
  if (!row.contains("timestamp") || !row["timestamp"].is_number()) return std::nullopt;
  for (const char* const name : {"input_length", "output_length"}) {
    if (!row.contains(name) || !row[name].is_number_integer()) return std::nullopt;
  }
  const double at_ms = row["timestamp"].get<double>();
  if (!(at_ms >= 0 && at_ms < 1e13)) return std::nullopt;
  TracedRequest request;
  request.arrival_us = std::llround(at_ms * 1e3);
  request.prompt_tokens = row["input_length"].get<int64_t>();
  request.answer_tokens = row["output_length"].get<int64_t>();
  if (!row.contains("hash_ids")) return request;
  for (const nlohmann::json& id : row["hash_ids"]) {
    if (!id.is_number_integer()) return std::nullopt;
    request.hash_ids.push_back(id.get<int64_t>());
  }
  return request;
}

// Both kinds of traces have requests without an answer: a token is sampled all the same.
bool Complete(TracedRequest* request) {
  request->answer_tokens = std::max<int64_t>(request->answer_tokens, 1);
  return request->prompt_tokens >= 1 && request->prompt_tokens <= kTokensMax &&
         request->answer_tokens <= kTokensMax - request->prompt_tokens;
}

}  // namespace

absl::StatusOr<std::vector<TracedRequest>> ParseRequests(std::string_view text,
                                                         const std::string& file) {
  std::vector<TracedRequest> requests;
  int number = 0;
  for (const absl::string_view piece :
       absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    ++number;
    const std::string line(absl::StripAsciiWhitespace(piece));
    if (line.empty() || line == "TIMESTAMP,ContextTokens,GeneratedTokens") continue;
    std::optional<TracedRequest> request = line[0] == '{' ? MooncakeRow(line) : AzureRow(line);
    if (!request.has_value() || !Complete(&*request)) {
      return absl::InvalidArgumentError(
          absl::StrCat(file, ":", number,
                       ": neither TIMESTAMP,ContextTokens,GeneratedTokens nor an object with "
                       "timestamp, input_length and output_length of 1 to ",
                       kTokensMax, " tokens"));
    }
    requests.push_back(*std::move(request));
  }
  if (requests.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(file, ":", number, ": there are no requests"));
  }
  std::stable_sort(requests.begin(), requests.end(),
                   [](const TracedRequest& one, const TracedRequest& other) {
                     return one.arrival_us < other.arrival_us;
                   });
  const int64_t first_us = requests[0].arrival_us;
  for (TracedRequest& request : requests) request.arrival_us -= first_us;
  return requests;
}

std::vector<TracedRequest> GenerateRequests(const PoissonPlan& plan) {
  Random random(plan.seed);
  std::vector<TracedRequest> requests;
  double at_us = 0;
  for (int64_t i = 0; i < plan.requests; ++i) {
    TracedRequest request;
    request.arrival_us = std::llround(at_us);
    const size_t prompts = static_cast<size_t>(plan.prompt_max - plan.prompt_min + 1);
    const size_t answers = static_cast<size_t>(plan.answer_max - plan.answer_min + 1);
    request.prompt_tokens = plan.prompt_min + static_cast<int64_t>(random.Index(prompts));
    request.answer_tokens = plan.answer_min + static_cast<int64_t>(random.Index(answers));
    requests.push_back(request);
    at_us += random.Exponential(1e6 / plan.per_s);
  }
  return requests;
}

}  // namespace sim::serving
