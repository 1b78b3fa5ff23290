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
  Best(const Dag& dag, const std::vector<Cost>& costs, double front_end_ns)
      : dag_(dag), costs_(costs), front_end_ns_(front_end_ns) {}

  // Keeps the first of those with the least time.
  void Try(Algorithm algorithm, Placement placement) {
    const double makespan_ns = Makespan(dag_, placement, costs_, front_end_ns_);
    if (any_ && makespan_ns >= makespan_ns_) return;
    any_ = true;
    algorithm_ = algorithm;
    placement_ = std::move(placement);
    makespan_ns_ = makespan_ns;
  }
  Choice Take() { return {algorithm_, Synchronise(dag_, std::move(placement_)), makespan_ns_}; }

 private:
  const Dag& dag_;
  const std::vector<Cost>& costs_;
  const double front_end_ns_;
  bool any_ = false;
  Algorithm algorithm_ = Algorithm::kOneStream;
  Placement placement_;
  double makespan_ns_ = 0;
};

}  // namespace

Choice Choose(const Dag& dag, const std::vector<Cost>& costs, double front_end_ns,
              int streams_max) {
  const Dag minimal = Reduce(dag).minimal;  // the same paths, and less to look at
  Best best(minimal, costs, front_end_ns);
  best.Try(Algorithm::kOneStream, OneStream(minimal));
  Assignment nimble = AssignNimble(minimal, streams_max);
  const int width = std::min(nimble.streams, kListStreamsMax);
  best.Try(Algorithm::kNimble, {std::move(nimble.stream), std::move(nimble.order)});
  for (int streams = 2; streams <= width; streams += streams < kListStreamsEach ? 1 : streams) {
    for (const bool fills : {false, true}) {
      best.Try(Algorithm::kList, PlaceByList(minimal, costs, {streams, fills, front_end_ns}));
    }
  }
  return best.Take();
}

}  // namespace scheduler::streams
