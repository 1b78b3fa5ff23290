#include "serve/front/loading_lines.h"

#include "absl/strings/str_cat.h"
#include "kernels/llm/arguments.h"

namespace serve::front {

std::string LoadingLines::Line(const std::string& text) {
  const std::string begin = line_is_open_ ? "\r\033[K" : "";
  line_is_open_ = false;
  return absl::StrCat(begin, "laneway-serve: ", text, "\n");
}

std::string LoadingLines::Loading(const llm::EngineStatus& status) {
  const uint64_t of = status.bytes == 0 ? 1 : status.bytes;
  const int percent =
      static_cast<int>(static_cast<double>(status.bytes_done) / static_cast<double>(of) * 100);
  if (percent == percent_) return "";
  const bool first = percent_ < 0;
  percent_ = percent;
  const std::string size = absl::StrCat(of >> 20, " MiB");
  if (!on_terminal_) return first ? Line(absl::StrCat("loading ", name_, " (", size, ")")) : "";
  line_is_open_ = true;
  return absl::StrCat("\r\033[Klaneway-serve: loading ", name_, ": ", percent, " % of ", size);
}

std::string LoadingLines::Next(const llm::EngineStatus& status) {
  if (status.state == llm::EngineState::kLoading) return Loading(status);
  percent_ = -1;
  if (status.state == llm::EngineState::kReady) {
    last_loss_.clear();
    return Line(absl::StrCat(name_, " is ready: room for ",
                             int64_t{status.ready.blocks} * kernels::llm::kBlockTokens,
                             " tokens, of a request at most ", status.ready.context_max));
  }
  if (status.state != llm::EngineState::kLost || status.why == last_loss_) return "";
  last_loss_ = status.why;
  return Line(absl::StrCat(name_, ": ", status.why, "; another engine is started"));
}

}  // namespace serve::front
