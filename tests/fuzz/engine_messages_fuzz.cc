// Messages between a front and its engine, and frames of them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>

#include "serve/engine/frames.h"
#include "serve/llm/engine/messages.h"

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

void CheckMessage(const serve::engine::Bytes& body) {
  serve::llm::Message message;
  if (serve::llm::DecodeUntrusted(body, &message)) Require(serve::llm::Encode(message) == body);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span<const uint8_t>(data, size));
  CheckMessage({bytes.begin(), bytes.end()});
  // In two pieces, as a socket may give them.
  serve::engine::FrameReader reader;
  reader.AddUntrusted(bytes.first(size / 2));
  serve::engine::Bytes all;
  for (int piece = 0; piece < 2; ++piece) {
    while (const std::optional<serve::engine::Bytes> frame = reader.Take()) {
      CheckMessage(*frame);
      serve::engine::AppendFrame(*frame, &all);
    }
    if (piece == 0) reader.AddUntrusted(bytes.subspan(size / 2));
  }
  Require(std::equal(all.begin(), all.end(), bytes.begin()));
  return 0;
}
