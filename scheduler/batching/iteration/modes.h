// The modes of iteration batching, by name. Thread safety: as IterationBatcher.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "scheduler/batching/iteration/iteration_batcher.h"

namespace scheduler::batching::iteration {

// orca.h, budget.h and whole_request.h say what each does.
const std::vector<std::string>& ModeNames();
// Null: there is no mode of this name.
std::unique_ptr<IterationBatcher> MakeBatcher(const std::string& mode, const Options& options);

}  // namespace scheduler::batching::iteration
