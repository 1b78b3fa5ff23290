// What clients and people give a served function: frames, manifests and .npy files.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "functions/manifest.h"
#include "functions/npy.h"
#include "functions/serving/frames.h"

namespace {

using functions::Bytes;

void Require(bool holds) {
  if (!holds) std::abort();
}

bool IsFrameOf(const Bytes& frame, std::span<const std::byte> body) {
  return std::equal(frame.begin() + 4, frame.end(), body.begin(), body.end());
}

void CheckFrames(std::span<const std::byte> body) {
  functions::Request request;
  if (functions::DecodeRequestUntrusted(body, &request))
    Require(IsFrameOf(functions::EncodeRequest(request), body));
  functions::Answer answer;
  if (functions::DecodeAnswerUntrusted(body, &answer))
    Require(IsFrameOf(functions::EncodeAnswer(answer), body));
}

void CheckManifest(std::string_view text) {
  functions::Manifest manifest, again;
  std::string why;
  if (!functions::ParseManifestUntrusted(text, &manifest, &why)) return Require(!why.empty());
  Require(functions::ParseManifestUntrusted(functions::JsonOf(manifest), &again, &why));
  Require(manifest == again);
}

void CheckNpy(std::span<const std::byte> file) {
  functions::Array array, again;
  std::string why;
  if (!functions::DecodeNpyUntrusted(file, &array, &why)) return Require(!why.empty());
  Require(
      functions::DecodeNpyUntrusted(functions::EncodeNpy(array.type, array.bytes), &again, &why));
  Require(array.type == again.type && array.bytes == again.bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span<const uint8_t>(data, size));
  CheckFrames(bytes);
  CheckManifest({reinterpret_cast<const char*>(data), size});
  CheckNpy(bytes);
  return 0;
}
