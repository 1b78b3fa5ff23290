#include "functions/player/verify.h"

namespace functions {

absl::Status Verify(const Function& function, Player* player) {
  std::vector<Bytes> outputs;
  for (const bool again : {false, true}) {
    for (const Sample& sample : function.samples) {
      const std::vector<std::span<const std::byte>> inputs(sample.inputs.begin(),
                                                           sample.inputs.end());
      const absl::Status run = player->Run(inputs, &outputs);
      if (!run.ok()) return run;
      if (outputs == sample.outputs) continue;
      return absl::FailedPreconditionError(
          again ? "its outputs depend on the requests before, so it cannot be served"
                : "replayed, it gives other outputs than the program did, so it cannot be served");
    }
  }
  return absl::OkStatus();
}

}  // namespace functions
