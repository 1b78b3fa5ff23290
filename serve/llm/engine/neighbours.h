// The stages before and after one stage of an engine, as that stage deals with them: which sockets
// lead to them, how all stages come to one width of products, and where a step's rows come from and
// go. A stage that is alone has no neighbours, and waits for none.
//
// Each failure that is kCancelled is a neighbour's end (hidden_channel.h). Thread safety: the
// engine's thread alone.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "serve/engine/device.h"
#include "serve/llm/engine/hidden_channel.h"
#include "serve/llm/stage/stage.h"

namespace serve::llm {

class Neighbours {
 public:
  // `passed`: the first descriptor of a socket to a neighbour, in the order of supervisor.h.
  explicit Neighbours(int passed) : passed_(passed) {}

  // Before the weights are loaded: the next stage, which may be ready first, waits for the offer.
  // The memory that is pinned must be unmapped after the device has gone.
  absl::Status Offer(const LayerShare& share, const HiddenShape& shape, engine::Device* device);
  // From the last stage to the first, each when its weights are loaded.
  absl::Status AgreeOnWidth(const HiddenShape& shape, engine::Device* device, Stage* stage);

  // Waits until the rows of this plan are there, and room for what is computed of them.
  absl::StatusOr<HiddenStates> BeginStep(uint64_t plan);
  // The rows are computed.
  absl::Status EndStep(uint64_t plan);

  bool has_next() const { return next_.has_value(); }

 private:
  const int passed_;
  std::optional<HiddenReceiver> previous_;
  std::optional<HiddenSender> next_;
};

}  // namespace serve::llm
