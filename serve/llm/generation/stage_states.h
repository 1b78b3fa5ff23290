// The progress of an engine's stages while they load, put together from what each of them has told.
// Pure.
//
// Thread safety: one thread at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "serve/llm/engine/messages.h"

namespace serve::llm {

class StageStates {
 public:
  // Of a new engine, which has told nothing yet.
  explicit StageStates(size_t stages) : progress_(stages), ready_(stages) {}

  // False: the stage loads what it has loaded.
  bool OnProgress(size_t stage, const Progress& progress);
  // False: the stage was ready before, or is of another engine than the others.
  bool OnReady(size_t stage, const Ready& ready);

  // Of all stages that have told it.
  Progress progress() const;
  // Once all stages are ready: a step's blocks are the same in all of them, so they have as many as
  // the one with the fewest.
  std::optional<Ready> ready() const;

 private:
  std::vector<Progress> progress_;
  std::vector<std::optional<Ready>> ready_;
};

}  // namespace serve::llm
