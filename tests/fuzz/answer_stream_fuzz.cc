// Streams of answers, as a server that anybody may run sends them, in pieces of any size.
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cli/load/answer_stream.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t piece = 1 + data[0];
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  load::Answer whole;
  load::Answer pieces;
  load::AnswerStream at_once(&whole);
  load::AnswerStream in_pieces(&pieces);
  at_once.Feed(text, 1);
  for (size_t at = 0; at < text.size(); at += piece) {
    if (!in_pieces.Feed(text.substr(at, piece), 1)) break;
  }
  at_once.End();
  in_pieces.End();
  assert(whole.failure == pieces.failure && whole.tokens_us == pieces.tokens_us);
  assert(whole.answer_tokens == pieces.answer_tokens);
  return 0;
}
