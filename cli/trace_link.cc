#include "cli/trace_link.h"

#include <nlohmann/json.hpp>
#include <string>

namespace cli {

absl::Status TraceLink::Begin() {
  const absl::StatusOr<std::string> answer = Ask("begin", details_ ? 1 : 0);
  if (!answer.ok()) return answer.status();
  const nlohmann::json json = nlohmann::json::parse(*answer, nullptr, false);
  if (!json.is_object()) return absl::InternalError("the daemon's answer is no trace");
  number_ = json.value("trace", uint64_t{0});
  return absl::OkStatus();
}

absl::Status TraceLink::Take(const char* what, CallsAnswer* answer, JobCalls* calls) {
  const absl::StatusOr<std::string> text = Ask(what, number_);
  if (!text.ok()) return text.status();
  return TakeCallsUntrusted(*text, answer, calls)
             ? absl::OkStatus()
             : absl::InternalError("the daemon's answer is no trace");
}

absl::StatusOr<std::string> TraceLink::Ask(const char* what, uint64_t value) {
  const nlohmann::json ask = {
      {"command", "trace"}, {"id", request_.id}, {"text", what}, {"value", value}};
  return AskDaemon(request_, ask.dump());
}

}  // namespace cli
