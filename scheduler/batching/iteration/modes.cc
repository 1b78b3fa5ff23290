#include "scheduler/batching/iteration/modes.h"

#include <utility>

#include "scheduler/batching/iteration/budget.h"
#include "scheduler/batching/iteration/orca.h"
#include "scheduler/batching/iteration/whole_request.h"

namespace scheduler::batching::iteration {
namespace {

struct NamedMode {
  std::string name;
  std::unique_ptr<Mode> (*make)();
};

template <typename Kind>
std::unique_ptr<Mode> MakeMode() {
  return std::make_unique<Kind>();
}

const std::vector<NamedMode>& Modes() {
  static const std::vector<NamedMode>* const modes = new std::vector<NamedMode>{
      {"budget", &MakeMode<Budget>},
      {"orca", &MakeMode<Orca>},
      {"padded", &MakeMode<Padded>},
      {"fastertransformer", &MakeMode<FasterTransformer>},
  };
  return *modes;
}

}  // namespace

const std::vector<std::string>& ModeNames() {
  static const std::vector<std::string>* const names = [] {
    std::vector<std::string>* const all = new std::vector<std::string>;
    for (const NamedMode& mode : Modes()) all->push_back(mode.name);
    return all;
  }();
  return *names;
}

std::unique_ptr<IterationBatcher> MakeBatcher(const std::string& mode, const Options& options) {
  for (const NamedMode& each : Modes()) {
    if (each.name == mode) return std::make_unique<IterationBatcher>(options, each.make());
  }
  return nullptr;
}

}  // namespace scheduler::batching::iteration
