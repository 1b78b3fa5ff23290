// A conversation as the text that its model was trained on: the template of a model's files, in a
// subset of Jinja (jinja/). Templates come from anywhere: depth, sizes, work and output are
// bounded, and what the subset lacks is refused by name when a template is read (docs/models.md).
//
// A template is rendered as the package transformers does: trim_blocks and lstrip_blocks are on, no
// value can be changed, {% break %} and {% continue %} are there, and `tojson` escapes nothing for
// HTML. https://huggingface.co/docs/transformers/chat_templating
//
// Thread safety: const methods from any thread.
#pragma once

#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace serve::llm {

// Keeps the order of keys, in which `tojson` writes them.
using OrderedJson = nlohmann::ordered_json;

struct Conversation {
  OrderedJson messages = OrderedJson::array();
  bool add_generation_prompt = true;
  std::optional<std::string> bos_token;  // without one the variable is undefined
  std::optional<std::string> eos_token;
  // More variables, by name. `tools` and `documents` are None without one here.
  OrderedJson variables = OrderedJson::object();
  std::tm now{};  // for strftime_now
};

class ChatTemplate {
 public:
  // A failure's message is the end of a sentence that begins with "the chat template".
  static absl::StatusOr<ChatTemplate> ParseUntrusted(std::string_view text);

  // InvalidArgument: the conversation does not suit the template. The message is the template's own
  // where it calls raise_exception. ResourceExhausted: it takes too much work.
  absl::StatusOr<std::string> Render(const Conversation& conversation) const;

 private:
  struct Parsed;
  explicit ChatTemplate(std::shared_ptr<const Parsed> parsed) : parsed_(std::move(parsed)) {}

  std::shared_ptr<const Parsed> parsed_;
};

}  // namespace serve::llm
