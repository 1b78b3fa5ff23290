// Values of a request body as the kinds that fields have. Pure. Each Read returns what is wrong
// with the value, as the end of a sentence that begins with the field's name; empty: nothing.
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/openai/fields.h"

namespace serve::openai {

using Json = nlohmann::json;

// A whole body: an object of bounded depth in valid UTF-8. The returned text is what is wrong.
std::string ReadBodyUntrusted(std::string_view body, Json* object);

std::string Read(const Json& value, bool* result);
std::string Read(const Json& value, double least, double most, double* result);
std::string Read(const Json& value, int64_t least, int64_t most, int64_t* result);
std::string Read(const Json& value, std::string* result);
std::string ReadTexts(const Json& value, std::vector<std::string>* texts);
std::string ReadTokens(const Json& value, std::vector<int32_t>* tokens);
std::string ReadPrompts(const Json& value, std::vector<Prompt>* prompts);
std::string ReadMessages(const Json& value, std::vector<ChatMessage>* messages);
std::string ReadBias(const Json& value, std::vector<std::pair<int32_t, float>>* bias);

}  // namespace serve::openai
