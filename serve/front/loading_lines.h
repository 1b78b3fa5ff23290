// Lines on standard error about the loading of a model, and about engines that are lost. On a
// terminal one line changes, elsewhere lines are plain. Pure.
//
// Thread safety: one thread at a time.
#pragma once

#include <string>

#include "serve/llm/generation/engine_generator.h"

namespace serve::front {

class LoadingLines {
 public:
  LoadingLines(std::string name, bool on_terminal)
      : name_(std::move(name)), on_terminal_(on_terminal) {}

  // The text to write now; empty: the status has nothing new.
  std::string Next(const llm::EngineStatus& status);

 private:
  std::string Loading(const llm::EngineStatus& status);
  // Ends a line that would have changed.
  std::string Line(const std::string& text);

  const std::string name_;
  const bool on_terminal_;
  bool line_is_open_ = false;
  int percent_ = -1;       // that was said of this engine
  std::string last_loss_;  // one reason is said once in a row
};

}  // namespace serve::front
