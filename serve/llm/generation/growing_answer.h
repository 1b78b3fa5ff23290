// An answer while it is generated: its tokens, and how the next token is drawn. What penalties need
// to know is kept as the edits of logits that they make (kernels/llm/arguments.h). Pure.
//
// Thread safety: one thread at a time. Ownership: the request and the marks of an end outlive it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/llm/arguments.h"
#include "serve/llm/generation/generator.h"
#include "serve/llm/stage/sampling_batch.h"

namespace serve::llm {

// True where how a token is drawn depends on the tokens before: under penalties.
bool NeedsDrawn(const SamplingParameters& sampling);

class GrowingAnswer {
 public:
  // `number`: of the request's answers. `end_tokens`: the model's own marks of an end.
  GrowingAnswer(const GenerationRequest& request, int32_t number,
                const std::vector<int32_t>& end_tokens);

  // Of the prompt and the answer.
  int32_t size() const;
  // Tokens [first, first + count) of these. REQUIRES: they are there.
  std::vector<int32_t> Tokens(int32_t first, int32_t count) const;
  void Append(int32_t token);
  // True when the answer ends at this next token, independent of the token's text.
  bool StopsAt(int32_t token) const;
  // How the next token is drawn; or, when it is `drawing`, the token after it, which must not
  // depend on the next one (NeedsDrawn).
  Sampling NextSampling(bool drawing) const;

  // The blocks of keys and values that the batcher has told.
  std::vector<int32_t> blocks;

 private:
  bool IsShort(int32_t tokens) const;  // has fewer tokens than it must have

  const GenerationRequest& request_;
  const int32_t number_;
  std::vector<int32_t> stops_;  // tokens that end the answer
  std::vector<int32_t> generated_;
  std::vector<kernels::llm::TokenEdit> edits_;  // by rising token
};

}  // namespace serve::llm
