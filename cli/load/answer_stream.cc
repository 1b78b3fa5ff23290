#include "cli/load/answer_stream.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "cli/table.h"

namespace load {
namespace {

constexpr size_t kLineMax = 1 << 20;  // an event is a token and its alternatives
constexpr size_t kShownMax = 200;

// The text of a chunk's first choice, of completions or of chat; null: it holds none. A chat begins
// with a chunk that says whose turn it is and has no token.
const nlohmann::json* TextOf(const nlohmann::json& chunk) {
  const auto choices = chunk.find("choices");
  if (choices == chunk.end() || !choices->is_array() || choices->empty()) return nullptr;
  const nlohmann::json& choice = choices->front();
  if (!choice.is_object()) return nullptr;
  if (const auto text = choice.find("text"); text != choice.end() && text->is_string()) {
    return &*text;
  }
  const auto delta = choice.find("delta");
  if (delta == choice.end() || !delta->is_object()) return nullptr;
  const auto content = delta->find("content");
  if (content == delta->end() || !content->is_string()) return nullptr;
  if (delta->contains("role") && content->get_ref<const std::string&>().empty()) return nullptr;
  return &*content;
}

int64_t CountOf(const nlohmann::json& usage, const char* name) {
  const auto count = usage.find(name);
  return count != usage.end() && count->is_number_integer() ? count->get<int64_t>() : 0;
}

std::string MessageOf(const nlohmann::json& error) {
  const auto message = error.is_object() ? error.find("message") : error.end();
  return cli::Printable(message != error.end() && message->is_string()
                            ? message->get<std::string>()
                            : error.dump().substr(0, kShownMax));
}

}  // namespace

bool AnswerStream::OnLine(std::string_view line, int64_t now_us) {
  constexpr std::string_view kData = "data:";
  if (!line.starts_with(kData)) return true;  // empty, a comment, or another field of an event
  line.remove_prefix(kData.size());
  while (line.starts_with(' ')) line.remove_prefix(1);
  if (line == "[DONE]") {
    done_ = true;
    return true;
  }
  const nlohmann::json chunk = nlohmann::json::parse(line, nullptr, false);
  if (!chunk.is_object()) {
    answer_.failure =
        absl::StrCat("the server sent no JSON: ", cli::Printable(line.substr(0, kShownMax)));
    return false;
  }
  if (const auto error = chunk.find("error"); error != chunk.end() && !error->is_null()) {
    answer_.failure = MessageOf(*error);
    return false;
  }
  if (TextOf(chunk) != nullptr) answer_.tokens_us.push_back(now_us);
  if (const auto usage = chunk.find("usage"); usage != chunk.end() && usage->is_object()) {
    answer_.prompt_tokens = CountOf(*usage, "prompt_tokens");
    answer_.answer_tokens = CountOf(*usage, "completion_tokens");
  }
  return true;
}

bool AnswerStream::Feed(std::string_view bytes_untrusted, int64_t now_us) {
  while (!bytes_untrusted.empty()) {
    const size_t end = bytes_untrusted.find('\n');
    line_.append(bytes_untrusted.substr(0, end));
    if (line_.size() > kLineMax) {
      answer_.failure = absl::StrCat("the server sent a line of over ", kLineMax, " bytes");
      return false;
    }
    if (end == std::string_view::npos) return true;
    bytes_untrusted.remove_prefix(end + 1);
    if (line_.ends_with('\r')) line_.pop_back();
    const bool legal = OnLine(line_, now_us);
    line_.clear();
    if (!legal) return false;
  }
  return true;
}

void AnswerStream::End() {
  if (!answer_.ok()) return;
  if (!done_) answer_.failure = "the stream ended before [DONE]";
  if (done_ && answer_.tokens_us.empty()) answer_.failure = "the answer has no token";
}

}  // namespace load
