// The API's view of a model: text, tokens, and the generator that answers.
// Thread safety: the front's event loop.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "serve/llm/generation/generator.h"

namespace serve::openai {

enum class ModelState { kLoading, kReady, kDraining };

struct AnswerTextOptions {
  std::vector<std::string> stops;
  bool include_stop = false;
  bool skip_special_tokens = true;
  int32_t min_tokens = 0;  // no text ends the answer before them
};

// The text of one answer while its tokens come.
class AnswerText {
 public:
  struct Piece {
    std::string text;   // valid UTF-8, maybe empty: what may begin a stop is held back
    bool ends = false;  // the text has a stop
  };
  virtual ~AnswerText() = default;
  // `stops`: the token ends the answer and is no text of it.
  virtual Piece Add(int32_t token, bool stops) = 0;
  // The rest at the end: what was held back and is no stop.
  virtual std::string Flush() = 0;
};

struct ChatMessage {
  std::string role;
  std::string content;
};

class ServedModel {
 public:
  virtual ~ServedModel() = default;
  virtual const std::string& id() const = 0;
  virtual int64_t created() const = 0;  // seconds since 1970
  // A directory with tokenizer.json, from which clients load the tokenizer.
  virtual const std::string& root() const = 0;
  virtual int32_t context() const = 0;     // tokens of a prompt and its answer
  virtual int32_t vocabulary() const = 0;  // tokens are in [0, vocabulary)
  virtual ModelState state() const = 0;

  // `control`: control tokens that the text spells are tokens. `first`: begins with the tokens that
  // the model wants before a text. A failure's message is a sentence for the client.
  virtual absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text, bool control,
                                                      bool first) const = 0;
  // Bytes of one token, maybe part of a character. REQUIRES: a token of the vocabulary.
  virtual std::string_view BytesOf(int32_t token) const = 0;
  // Of tokens by themselves, whatever stands before them.
  virtual std::string Decode(const std::vector<int32_t>& tokens) const = 0;
  // Of a whole text: without the space that the tokenizer sets before one.
  virtual std::string DecodeText(const std::vector<int32_t>& tokens) const = 0;
  virtual absl::StatusOr<std::string> RenderChat(const std::vector<ChatMessage>& messages,
                                                 bool add_generation_prompt) const = 0;
  virtual std::unique_ptr<AnswerText> NewAnswerText(const AnswerTextOptions& options) const = 0;
  virtual llm::Generator& generator() = 0;
};

}  // namespace serve::openai
