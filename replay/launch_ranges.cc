#include "replay/launch_ranges.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <utility>

#include "replay/affine_forms.h"
#include "replay/covered_ranges.h"
#include "replay/guarded_places.h"

namespace replay {

namespace streams = scheduler::streams;

namespace {

class Launch {
 public:
  Launch(const KernelAccess& access, const Grid& grid, std::span<const std::byte> parameters,
         const Memory& memory, Bounds bounds)
      : access_(access),
        parameters_(parameters),
        memory_(memory),
        bounds_(bounds),
        ranges_(access.expressions.Ranges(grid, parameters)),
        forms_(access.expressions, grid, ranges_) {
    for (size_t k = 0; k < access.origins.size(); ++k) {
      places_.push_back(PlaceOf(access.origins[k]));
      if (places_.back()) addresses_ |= OriginSet{1} << k;
    }
  }

  LaunchTouches Run() {
    LaunchTouches out;
    out.unknown = access_.unknown;
    for (const Access& each : access_.accesses) {
      if (!out.unknown.empty()) break;
      if (!IsAttributed(each)) {
        out.unknown = "the address in line " + std::to_string(each.line) +
                      " lies in no allocation when the kernel is launched";
        break;
      }
      Add(each);
    }
    if (!out.unknown.empty()) return out;
    out.touches = Disjoint();
    out.bounded = bounded_;
    out.covers = Unread(CoveredRanges(forms_, access_.stores), out.touches);
    out.by_parameter = std::move(by_parameter_);
    return out;
  }

 private:
  std::optional<Range> PlaceOf(const Origin& origin) const {
    if (origin.kind == Origin::Kind::kVariable) return memory_.variable(origin.index);
    const std::optional<uint64_t> value = ValueOf(origin);
    return value.has_value() ? memory_.allocation(*value) : std::nullopt;
  }

  // REQUIRES: a parameter. Nothing: the launch did not pass it.
  std::optional<uint64_t> ValueOf(const Origin& origin) const {
    uint64_t value = 0;
    if (origin.index + sizeof value > parameters_.size()) return std::nullopt;
    std::memcpy(&value, parameters_.data() + origin.index, sizeof value);
    return value;
  }

  bool IsAttributed(const Access& each) const {
    const std::vector<OriginSet>& choices = each.address.alternatives();
    return std::all_of(choices.begin(), choices.end(), [this](OriginSet choice) {
      return (choice & (addresses_ | kPrivate)) != 0;
    });
  }

  // The part of each allocation that the access may reach: the interval of its address where that
  // is known, cut by conditions. An interval that ends beyond the allocation is cut there.
  void Add(const Access& each) {
    const Interval unbounded = each.range == kNoTerm ? Interval() : ranges_[each.range];
    const std::vector<Range> all = PartsOf(each, unbounded);
    const std::optional<Interval> bounded = Bounded(each, unbounded);
    const std::vector<Range> parts =
        bounded.has_value() ? PartsOf(each, *bounded) : std::vector<Range>();
    bounded_ = bounded_ || parts != all;
    const ParameterTouch through = ThroughParameter(each);
    for (const Range& range : parts) {
      by_parameter_.push_back(through);
      by_parameter_.back().touch.range = range;
    }
  }

  // Of each allocation that the address may lie in. Where the interval meets none of them, the
  // analysis has taken the address for another one, and all of them count.
  std::vector<Range> PartsOf(const Access& each, const Interval& interval) const {
    std::vector<Range> whole, inside;
    for (size_t k = 0; k < places_.size(); ++k) {
      if (!places_[k] || (each.address.touched() >> k & 1) == 0) continue;
      whole.push_back(*places_[k]);
      if (const std::optional<Range> part = PartOf(each, interval, *places_[k]))
        inside.push_back(*part);
    }
    return inside.empty() ? whole : inside;
  }

  // The addresses that conditions leave. Nothing: they hold for no thread. Sums and intervals know
  // different things: what both allow remains.
  std::optional<Interval> Bounded(const Access& each, Interval interval) const {
    if (each.conditions.empty() || bounds_ == Bounds::kIgnored) return interval;
    const std::optional<GuardedPlaces> places = PlacesOf(forms_, each.range, each.conditions);
    if (!places.has_value()) return interval;
    if (!places->reached) return std::nullopt;
    if (!interval.bounded()) return Interval{places->begin, places->last()};
    return Interval{std::max(interval.low, places->begin), std::min(interval.high, places->last())};
  }

  // Of one parameter, where the address can come from no other.
  ParameterTouch ThroughParameter(const Access& each) const {
    ParameterTouch through;
    through.touch.access = AccessOf(each.use);
    const OriginSet from = each.address.touched() & (addresses_ | kPrivate | kLoaded);
    if (!std::has_single_bit(from) || (from & access_.movable) == 0) return through;
    const Origin& origin = access_.origins[static_cast<size_t>(std::countr_zero(from))];
    through.value = ValueOf(origin).value_or(0);
    if (memory_.movable != nullptr && memory_.movable(through.value))
      through.parameter = origin.index;
    return through;
  }

  // Nothing: the interval lies beside the allocation.
  static std::optional<Range> PartOf(const Access& each, const Interval& interval,
                                     const Range& place) {
    if (!interval.bounded()) return place;
    const __int128 begin = std::max<__int128>(interval.low, place.begin);
    const __int128 end = std::min<__int128>(interval.high + each.bytes, place.end());
    if (begin >= end) return std::nullopt;
    return Range{static_cast<uint64_t>(begin), static_cast<uint64_t>(end - begin)};
  }

  static streams::Access AccessOf(uint8_t use) {
    const bool reads = (use & (kReads | kUpdates)) != 0;
    const bool writes = (use & (kWrites | kUpdates)) != 0;
    if (reads && writes) return streams::Access::kUpdate;
    return writes ? streams::Access::kWrite : streams::Access::kRead;
  }

  static streams::Access Both(streams::Access a, streams::Access b) {
    return a == b ? a : streams::Access::kUpdate;
  }

  // Cuts what overlaps at each begin and end.
  std::vector<Touch> Disjoint() {
    std::vector<uint64_t> cuts;
    for (const ParameterTouch& each : by_parameter_) {
      cuts.push_back(each.touch.range.begin);
      cuts.push_back(each.touch.range.end());
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    std::map<uint64_t, streams::Access> access_at;
    for (const ParameterTouch& each : by_parameter_) {
      auto cut = std::lower_bound(cuts.begin(), cuts.end(), each.touch.range.begin);
      for (; *cut < each.touch.range.end(); ++cut) {
        const auto at = access_at.emplace(*cut, each.touch.access).first;
        at->second = Both(at->second, each.touch.access);
      }
    }
    std::vector<Touch> touches;
    for (const auto& [begin, access] : access_at) {
      const uint64_t end = *std::upper_bound(cuts.begin(), cuts.end(), begin);
      if (!touches.empty() && touches.back().range.end() == begin &&
          touches.back().access == access) {
        touches.back().range.bytes += end - begin;
      } else {
        touches.push_back({{begin, end - begin}, access});
      }
    }
    return touches;
  }

  // The parts of the covered ranges that the launch only writes. All are ascending.
  static std::vector<Range> Unread(const std::vector<Range>& covered,
                                   const std::vector<Touch>& touches) {
    std::vector<Range> unread;
    for (const Range& range : covered) {
      uint64_t begin = range.begin;
      const auto take = [&](uint64_t end) {
        if (begin < end) unread.push_back({begin, end - begin});
      };
      for (const Touch& touch : touches) {
        if (touch.access == streams::Access::kWrite || touch.range.end() <= begin) continue;
        if (touch.range.begin >= range.end()) break;
        take(touch.range.begin);
        begin = touch.range.end();
      }
      take(range.end());
    }
    return unread;
  }

  const KernelAccess& access_;
  const std::span<const std::byte> parameters_;
  const Memory& memory_;
  const Bounds bounds_;
  const std::vector<Interval> ranges_;
  const AffineForms forms_;
  std::vector<std::optional<Range>> places_;  // by origin
  OriginSet addresses_ = 0;
  std::vector<ParameterTouch> by_parameter_;
  bool bounded_ = false;
};

}  // namespace

LaunchTouches TouchesOf(const KernelAccess& access, const Grid& grid,
                        std::span<const std::byte> parameters, const Memory& memory,
                        Bounds bounds) {
  return Launch(access, grid, parameters, memory, bounds).Run();
}

}  // namespace replay
