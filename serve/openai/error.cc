#include "serve/openai/error.h"

#include <cassert>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"

namespace serve::openai {
namespace {

const char* TypeOf(int status) {
  if (status == 401) return "authentication_error";
  if (status == 429) return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

}  // namespace

Error BadField(std::string_view param, std::string message) {
  return {400, std::move(message), std::string(param), "invalid_value"};
}

Error UnknownModel(std::string_view model) {
  return {404,
          absl::StrCat("the model '", std::string(model), "' is not served here; see /v1/models"),
          "model", "model_not_found"};
}

Error OfRefusal(llm::Refusal why, int64_t retry_after_s) {
  switch (why) {
    case llm::Refusal::kEmpty:
      return BadField("prompt", "there is nothing to compute");
    case llm::Refusal::kTooLong:
      return {400, "the prompt can never fit the model's context or memory", "prompt",
              "context_length_exceeded"};
    case llm::Refusal::kTooManyCopies:
      return BadField("n", "so many answers to one prompt never run at once; ask for fewer");
    case llm::Refusal::kQueueFull:
      return {429, "too many requests wait; try again later", "", "queue_full", retry_after_s};
  }
  assert(false);
  return {};
}

Error OfEnding(llm::Ending why) {
  switch (why) {
    case llm::Ending::kExpired:
      return {504, "the deadline passed before the answer was whole", "deadline_ms",
              "deadline_exceeded"};
    case llm::Ending::kEngineFault:
      return {500, "the model's engine failed at this request repeatedly", "", "engine_fault"};
    case llm::Ending::kTooLong:
      return {503, "the model has less memory than before, and the request does not fit any more",
              "", "out_of_memory"};
    case llm::Ending::kCancelled:
      return {503, "the request was cancelled by the server", "", "cancelled"};
    case llm::Ending::kStopped:
    case llm::Ending::kLength:
      break;
  }
  assert(false);
  return {};
}

// Text of a client stands in messages: bytes that are no UTF-8 are replaced.
std::string JsonOf(const Error& error) {
  using Json = nlohmann::ordered_json;
  Json inner = {{"message", error.message}, {"type", TypeOf(error.status)}};
  inner["param"] = error.param.empty() ? Json() : Json(error.param);
  inner["code"] = error.code.empty() ? Json() : Json(error.code);
  return Json{{"error", inner}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

http::Answer AnswerOf(const Error& error) {
  http::Answer answer{error.status, JsonOf(error)};
  if (error.retry_after_s > 0)
    answer.headers.emplace_back("retry-after", absl::StrCat(error.retry_after_s));
  if (error.status == 401) answer.headers.emplace_back("www-authenticate", "Bearer");
  return answer;
}

}  // namespace serve::openai
