// Chat templates from anywhere. An accepted template renders a conversation: to UTF-8, or to an
// error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "serve/llm/text/chat_template.h"
#include "serve/llm/text/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::StatusOr<serve::llm::ChatTemplate> parsed =
      serve::llm::ChatTemplate::ParseUntrusted({reinterpret_cast<const char*>(data), size});
  if (!parsed.ok()) {
    if (parsed.status().message().empty()) std::abort();
    return 0;
  }
  const serve::llm::Conversation conversation{
      .messages = {{{"role", "system"}, {"content", "a\nb"}},
                   {{"role", "user"}, {"content", {{{"type", "text"}, {"text", "\u00e9"}}}}},
                   {{"role", "assistant"}, {"content", nullptr}, {"n", 1.5}}},
      .bos_token = "<s>",
      .eos_token = "</s>",
      .variables = {{"x", 7}}};
  const absl::StatusOr<std::string> text = parsed->Render(conversation);
  if (text.ok() && !serve::llm::IsUtf8(*text)) std::abort();
  return 0;
}
