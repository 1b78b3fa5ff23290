// Answers one request for a function. Knows nothing of sockets: bytes in, bytes out.
//
// Thread safety: one thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "functions/function.h"
#include "functions/manifest.h"

namespace functions {

struct TensorView;

// What computes.
class Runner {
 public:
  virtual ~Runner() = default;
  // As Player::Run.
  virtual absl::Status Run(std::span<const std::span<const std::byte>> inputs,
                           std::vector<Bytes>* outputs) = 0;
};

class Handler {
 public:
  // REQUIRES: the manifest fits the runner's function. The runner outlives the handler.
  Handler(Manifest manifest, Runner* runner);

  // The body of a request's frame in, a whole answer's frame out. Not ok: the runner has failed,
  // and will not work again.
  absl::Status AnswerUntrusted(std::span<const std::byte> request, Bytes* answer);

 private:
  std::string WhyNot(const std::vector<TensorView>& tensors,
                     std::vector<std::span<const std::byte>>* inputs) const;

  const Manifest manifest_;
  const std::string json_;
  Runner& runner_;
};

}  // namespace functions
