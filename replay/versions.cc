#include "replay/versions.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "scheduler/streams/dependencies.h"
#include "scheduler/streams/reduction.h"

namespace replay {
namespace {

using scheduler::streams::Dag;
using scheduler::streams::NodeId;

// Stands for the scratch area: beyond all devices' addresses.
constexpr uint64_t kScratchBase = uint64_t{1} << 61;

using ParameterOf = std::pair<uint32_t, uint32_t>;  // launch, parameter

struct Version {
  Range range;
  std::map<ParameterOf, uint64_t> values;  // the parameters that reach it
};
using Versions = std::vector<Version>;

bool Contains(const Range& outer, const Range& inner) {
  return outer.begin <= inner.begin && inner.end() <= outer.end();
}
bool HasOuter(const std::vector<Range>& ranges, const Range& inner) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const Range& each) { return Contains(each, inner); });
}
bool HasOverlap(const std::vector<Range>& ranges, const Range& other) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const Range& each) {
    return each.begin < other.end() && other.begin < each.end();
  });
}

// What is left of the ranges without the others.
std::vector<Range> Subtract(std::vector<Range> ranges, const std::vector<Range>& others) {
  for (const Range& other : others) {
    std::vector<Range> left;
    for (const Range& each : ranges) {
      const uint64_t end = std::min(each.end(), std::max(each.begin, other.begin));
      const uint64_t begin = std::max(each.begin, std::min(each.end(), other.end()));
      if (each.begin < end) left.push_back({each.begin, end - each.begin});
      if (begin < each.end()) left.push_back({begin, each.end() - begin});
    }
    ranges = std::move(left);
  }
  return ranges;
}

class VersionSearch {
 public:
  explicit VersionSearch(std::span<const LaunchTouches> launches) : launches_(launches) {}

  Versions Run() {
    for (uint32_t launch = 0; launch < launches_.size(); ++launch) {
      std::set<std::pair<uint64_t, uint64_t>> tried;
      for (const ParameterTouch& each : launches_[launch].by_parameter) {
        if (!each.parameter.has_value()) continue;
        const Range range = ReachOf(launch, *each.parameter);
        if (tried.emplace(range.begin, range.bytes).second) Try(launch, range);
      }
    }
    return std::move(found_);
  }

 private:
  // All that the launch reaches through the parameter.
  Range ReachOf(uint32_t launch, uint32_t parameter) const {
    uint64_t begin = ~uint64_t{0}, end = 0;
    for (const ParameterTouch& each : launches_[launch].by_parameter) {
      if (each.parameter != parameter) continue;
      begin = std::min(begin, each.touch.range.begin);
      end = std::max(end, each.touch.range.end());
    }
    return {begin, end - begin};
  }

  // The version that begins with this launch, if there is one and it may live elsewhere. Later
  // launches may overwrite the range part by part.
  void Try(uint32_t first, const Range& range) {
    if (!HasOuter(launches_[first].covers, range)) return;
    Version version{.range = range, .values = {}};
    std::vector<Range> left = {range};  // of the version: not overwritten yet
    for (uint32_t launch = first; launch < launches_.size(); ++launch) {
      std::vector<Range> overwritten;
      if (launch != first) overwritten = launches_[launch].covers;
      if (!AddUses(launch, left, overwritten, &version)) return;
      left = Subtract(left, overwritten);
      if (!left.empty()) continue;
      for (const auto& [parameter, value] : version.values) taken_.insert(parameter);
      return found_.push_back(std::move(version));
    }
  }

  // False: the launch may reach the version in a way that can't be given another address. A range
  // that the launch overwrites belongs to the next version.
  bool AddUses(uint32_t launch, const std::vector<Range>& left,
               const std::vector<Range>& overwritten, Version* version) const {
    if (!launches_[launch].unknown.empty()) return false;
    for (const ParameterTouch& each : launches_[launch].by_parameter) {
      const bool named = each.parameter.has_value();
      const Range reach = named ? ReachOf(launch, *each.parameter) : each.touch.range;
      if (!HasOverlap(left, reach) || HasOuter(overwritten, reach)) continue;
      if (!named || taken_.contains({launch, *each.parameter})) return false;
      if (HasOverlap(overwritten, reach) || !HasOuter(left, reach)) return false;
      if (!Contains(version->range, {each.value, 1})) return false;
      version->values[{launch, *each.parameter}] = each.value;
    }
    return true;
  }

  const std::span<const LaunchTouches> launches_;
  Versions found_;
  std::set<ParameterOf> taken_;
};

// Each version has a place of its own: a shared one would order what renaming sets free.
Renaming Place(const Versions& versions) {
  Renaming renaming;
  for (const Version& version : versions) {
    const uint64_t at = renaming.bytes + version.range.begin % kPlaceAlignment;
    for (const auto& [of, value] : version.values)
      renaming.renames.push_back({of.first, of.second, at + value - version.range.begin});
    renaming.bytes =
        (at + version.range.bytes + kPlaceAlignment - 1) / kPlaceAlignment * kPlaceAlignment;
  }
  const auto earlier = [](const Rename& a, const Rename& b) {
    return std::pair(a.launch, a.parameter) < std::pair(b.launch, b.parameter);
  };
  std::sort(renaming.renames.begin(), renaming.renames.end(), earlier);
  return renaming;
}

Versions Without(const Versions& versions, size_t left_out) {
  Versions others = versions;
  others.erase(others.begin() + static_cast<ptrdiff_t>(left_out));
  return others;
}

bool AreEqual(const Dag& a, const Dag& b) {
  for (NodeId node = 0; node < a.nodes(); ++node) {
    const std::span<const NodeId> x = a.Successors(node), y = b.Successors(node);
    if (!std::equal(x.begin(), x.end(), y.begin(), y.end())) return false;
  }
  return true;
}

// The version whose place the longest path misses least.
size_t LeastUseful(std::span<const LaunchTouches> launches, const Versions& versions) {
  size_t least = 0;
  std::pair<int, uint64_t> least_cost{};  // the path; then bytes, of which more are better to drop
  for (size_t i = 0; i < versions.size(); ++i) {
    const std::optional<Dag> dag = OrderWith(launches, Place(Without(versions, i)));
    const std::pair cost(scheduler::streams::LongestPath(*dag), ~versions[i].range.bytes);
    if (i != 0 && cost >= least_cost) continue;
    least = i;
    least_cost = cost;
  }
  return least;
}

}  // namespace

Renaming ChooseRenaming(std::span<const LaunchTouches> launches, uint64_t bytes_max) {
  Versions versions;
  if (bytes_max != 0) versions = VersionSearch(launches).Run();
  if (versions.empty()) return {};
  const std::optional<Dag> freest = OrderWith(launches, Place(versions));
  if (!freest.has_value()) return {};
  const auto larger = [](const Version& a, const Version& b) {
    return a.range.bytes > b.range.bytes;
  };
  std::stable_sort(versions.begin(), versions.end(), larger);
  for (size_t i = 0; i < versions.size();) {
    const Versions fewer = Without(versions, i);
    if (AreEqual(*OrderWith(launches, Place(fewer)), *freest)) {
      versions = fewer;
    } else {
      ++i;
    }
  }
  while (Place(versions).bytes > bytes_max)
    versions = Without(versions, LeastUseful(launches, versions));
  return Place(versions);
}

std::optional<Dag> OrderWith(std::span<const LaunchTouches> launches, const Renaming& renaming) {
  std::map<ParameterOf, uint64_t> places;
  for (const Rename& rename : renaming.renames)
    places[{rename.launch, rename.parameter}] = kScratchBase + rename.place;
  scheduler::streams::Dependencies dependencies;
  for (uint32_t launch = 0; launch < launches.size(); ++launch) {
    if (!launches[launch].unknown.empty()) {
      dependencies.AddBarrier();
      continue;
    }
    std::vector<Touch> touches;
    for (const ParameterTouch& each : launches[launch].by_parameter) {
      touches.push_back(each.touch);
      if (!each.parameter.has_value()) continue;
      if (const auto at = places.find({launch, *each.parameter}); at != places.end())
        touches.back().range.begin += at->second - each.value;
    }
    dependencies.Add(touches);
  }
  const std::optional<Dag> dag = dependencies.Graph();
  if (!dag.has_value()) return std::nullopt;
  return Reduce(*dag).minimal;
}

}  // namespace replay
