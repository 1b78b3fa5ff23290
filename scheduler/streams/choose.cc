#include "scheduler/streams/choose.h"

#include <algorithm>
#include <utility>

#include "scheduler/streams/list_schedule.h"

namespace scheduler::streams {
namespace {

// Past so many streams a list schedule with fewer of them is not looked for.
constexpr int kListStreamsMax = 64;

class Best {
 public:
  Best(const std::vector<Cost>& costs, double front_end_ns)
      : costs_(costs), front_end_ns_(front_end_ns) {}

  // Keeps the first of those with the least time.
  void Try(Algorithm algorithm, Assignment assignment) {
    const double makespan_ns = Makespan(assignment, costs_, front_end_ns_);
    if (any_ && makespan_ns >= choice_.makespan_ns) return;
    any_ = true;
    choice_ = {algorithm, std::move(assignment), makespan_ns};
  }
  Choice Take() { return std::move(choice_); }

 private:
  const std::vector<Cost>& costs_;
  const double front_end_ns_;
  bool any_ = false;
  Choice choice_;
};

}  // namespace

Choice Choose(const Dag& dag, const std::vector<Cost>& costs, double front_end_ns,
              int streams_max) {
  Best best(costs, front_end_ns);
  best.Try(Algorithm::kOneStream, OneStream(dag));
  Assignment nimble = AssignNimble(dag, streams_max);
  const int width = std::min(nimble.streams, kListStreamsMax);
  best.Try(Algorithm::kNimble, std::move(nimble));
  // Fewer streams by halves: near the best number the time is flat.
  for (int streams = width; streams > 1; streams = (streams + 1) / 2) {
    for (const bool fills : {false, true}) {
      best.Try(Algorithm::kList, AssignByList(dag, costs, {streams, fills, front_end_ns}));
    }
    if (streams == 2) break;
  }
  return best.Take();
}

}  // namespace scheduler::streams
