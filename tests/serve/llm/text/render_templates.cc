// Renders chat templates for a test in another language. Reads a line of JSON {"template": TEXT,
// "messages": [...], "add_generation_prompt": TRUTH, "variables": {...}} from standard input, and
// prints for each {"text": ...}, {"refused": ...} where the template is not read, or {"failed":
// ...}. bos_token is <s>, eos_token is </s>, and it is Sunday, 2 March 2025, 15:04:05.
#include <cstdio>
#include <iostream>
#include <string>

#include "serve/llm/text/chat_template.h"

namespace {

using serve::llm::ChatTemplate;
using serve::llm::Conversation;
using serve::llm::OrderedJson;

std::tm Now() {
  std::tm now{};
  now.tm_year = 125;
  now.tm_mon = 2;
  now.tm_mday = 2;
  now.tm_yday = 60;
  now.tm_hour = 15;
  now.tm_min = 4;
  now.tm_sec = 5;
  return now;
}

OrderedJson Answer(const OrderedJson& question) {
  const absl::StatusOr<ChatTemplate> parsed =
      ChatTemplate::ParseUntrusted(question["template"].get<std::string>());
  if (!parsed.ok()) return {{"refused", std::string(parsed.status().message())}};
  const absl::StatusOr<std::string> text =
      parsed->Render({.messages = question["messages"],
                      .add_generation_prompt = question["add_generation_prompt"].get<bool>(),
                      .bos_token = "<s>",
                      .eos_token = "</s>",
                      .variables = question["variables"],
                      .now = Now()});
  if (!text.ok()) return {{"failed", std::string(text.status().message())}};
  return {{"text", *text}};
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);)
    std::printf("%s\n", Answer(OrderedJson::parse(line)).dump().c_str());
  return 0;
}
