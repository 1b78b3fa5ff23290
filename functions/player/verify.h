// Whether a recorded function computes what its program computed.
//
// Thread safety: as the player's.
#pragma once

#include "absl/status/status.h"
#include "functions/function.h"
#include "functions/player/player.h"

namespace functions {

// Runs all samples in order, twice, and compares every byte of the outputs. A function that
// remembers something between requests fails the second time. FailedPrecondition with a sentence.
absl::Status Verify(const Function& function, Player* player);

}  // namespace functions
