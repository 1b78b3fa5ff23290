#include "functions/request_borders.h"

#include <algorithm>
#include <utility>

namespace functions {
namespace {

// Tells where requests begin in calls that it is given one after the other.
class RequestWatch {
 public:
  bool BeginsRequest(const RecordedCall& call) {
    const bool begins = call.kind == StepKind::kUpload && has_answered_;
    if (call.kind != StepKind::kCall) has_answered_ = call.kind == StepKind::kDownload;
    return begins;
  }

 private:
  bool has_answered_ = false;
};

bool HasBorder(const RecordedIteration& iteration) {
  RequestWatch watch;
  return std::any_of(iteration.calls.begin(), iteration.calls.end(),
                     [&](const RecordedCall& call) { return watch.BeginsRequest(call); });
}

bool AreAlike(const RecordedIteration& a, const RecordedIteration& b) {
  return std::equal(a.calls.begin(), a.calls.end(), b.calls.begin(), b.calls.end(),
                    [](const RecordedCall& one, const RecordedCall& other) {
                      return one.kind == other.kind && one.call.op == other.call.op &&
                             one.content.size() == other.content.size();
                    });
}

}  // namespace

std::vector<RecordedIteration> CutAtRequests(std::vector<RecordedIteration> iterations) {
  if (std::none_of(iterations.begin(), iterations.end(), &HasBorder)) return iterations;
  std::vector<RecordedIteration> requests(1);
  RequestWatch watch;
  for (RecordedIteration& iteration : iterations) {
    for (RecordedCall& call : iteration.calls) {
      if (watch.BeginsRequest(call)) requests.emplace_back();
      requests.back().calls.push_back(std::move(call));
    }
  }
  // The first one may have begun earlier, and the last one may end later.
  if (!AreAlike(requests[0], requests[1])) requests.erase(requests.begin());
  if (!AreAlike(requests.back(), requests.front())) requests.pop_back();
  const bool all_alike = std::all_of(
      requests.begin(), requests.end(),
      [&](const RecordedIteration& request) { return AreAlike(request, requests.front()); });
  if (requests.size() < 2 || !all_alike) return {};
  if (requests.size() > iterations.size()) requests.resize(iterations.size());
  return requests;
}

}  // namespace functions
