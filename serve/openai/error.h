// Errors in the shape of OpenAI's API: {"error": {message, type, param, code}}.
// Thread safety: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "serve/http/message.h"
#include "serve/llm/generation/generator.h"

namespace serve::openai {

struct Error {
  int status = 400;
  std::string message;  // a sentence for the client
  std::string param;    // the field at fault; empty: null
  std::string code;     // empty: null
  int64_t retry_after_s = 0;
};

Error BadField(std::string_view param, std::string message);
Error UnknownModel(std::string_view model);
Error OfRefusal(llm::Refusal why, int64_t retry_after_s);
// REQUIRES: an ending other than kStopped and kLength.
Error OfEnding(llm::Ending why);

std::string JsonOf(const Error& error);
http::Answer AnswerOf(const Error& error);

}  // namespace serve::openai
