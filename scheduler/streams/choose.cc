#include "scheduler/streams/choose.h"

#include <algorithm>
#include <utility>

#include "scheduler/streams/list_schedule.h"
#include "scheduler/streams/reduction.h"

namespace scheduler::streams {
namespace {

// A list schedule is tried with each number of streams up to the first, then with doubled numbers
// up to the second. Networks do best with three or four, and past eight the time is flat; graphs of
// many small operations on a device without a front end want more.
constexpr int kListStreamsEach = 8;
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
  const Dag minimal = Reduce(dag).minimal;  // the same paths, and less to look at
  Best best(costs, front_end_ns);
  best.Try(Algorithm::kOneStream, OneStream(minimal));
  Assignment nimble = AssignNimble(minimal, streams_max);
  const int width = std::min(nimble.streams, kListStreamsMax);
  best.Try(Algorithm::kNimble, std::move(nimble));
  for (int streams = 2; streams <= width; streams += streams < kListStreamsEach ? 1 : streams) {
    for (const bool fills : {false, true}) {
      best.Try(Algorithm::kList, AssignByList(minimal, costs, {streams, fills, front_end_ns}));
    }
  }
  return best.Take();
}

}  // namespace scheduler::streams
