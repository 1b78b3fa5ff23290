#include "replay/launch_ranges.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace replay {

namespace streams = scheduler::streams;

namespace {

class Launch {
 public:
  Launch(const KernelAccess& access, const Grid& grid, std::span<const std::byte> parameters,
         const Memory& memory)
      : access_(access), memory_(memory), ranges_(access.expressions.Ranges(grid, parameters)) {
    for (size_t k = 0; k < access.origins.size(); ++k) {
      places_.push_back(PlaceOf(access.origins[k], parameters));
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
    if (out.unknown.empty()) out.touches = Disjoint();
    return out;
  }

 private:
  std::optional<Range> PlaceOf(const Origin& origin, std::span<const std::byte> parameters) const {
    if (origin.kind == Origin::Kind::kVariable) return memory_.variable(origin.index);
    uint64_t value = 0;
    if (origin.index + sizeof value > parameters.size()) return std::nullopt;
    std::memcpy(&value, parameters.data() + origin.index, sizeof value);
    return memory_.allocation(value);
  }

  bool IsAttributed(const Access& each) const {
    const std::vector<OriginSet>& choices = each.address.alternatives();
    return std::all_of(choices.begin(), choices.end(), [this](OriginSet choice) {
      return (choice & (addresses_ | kPrivate)) != 0;
    });
  }

  // The part of each allocation that the access may reach: the interval of its address where that
  // is known. The interval of a kernel that tests its index against a bound ends beyond the
  // allocation, so it is cut there.
  void Add(const Access& each) {
    std::vector<Range> whole, inside;
    for (size_t k = 0; k < places_.size(); ++k) {
      if (!places_[k] || (each.address.touched() >> k & 1) == 0) continue;
      whole.push_back(*places_[k]);
      if (const std::optional<Range> part = PartOf(each, *places_[k])) inside.push_back(*part);
    }
    for (const Range& range : inside.empty() ? whole : inside) Mark(range, each.use);
  }

  std::optional<Range> PartOf(const Access& each, const Range& place) const {
    if (each.range == kNoTerm || !ranges_[each.range].bounded()) return place;
    const Interval interval = ranges_[each.range];
    const __int128 begin = std::max<__int128>(interval.low, place.begin);
    const __int128 end = std::min<__int128>(interval.high + each.bytes, place.end());
    if (begin >= end) return std::nullopt;
    return Range{static_cast<uint64_t>(begin), static_cast<uint64_t>(end - begin)};
  }

  void Mark(const Range& range, uint8_t use) {
    const bool reads = (use & (kReads | kUpdates)) != 0;
    const bool writes = (use & (kWrites | kUpdates)) != 0;
    marks_.push_back({range, AccessOf(reads, writes)});
  }

  static streams::Access AccessOf(bool reads, bool writes) {
    if (reads && writes) return streams::Access::kUpdate;
    return writes ? streams::Access::kWrite : streams::Access::kRead;
  }

  static streams::Access Both(streams::Access a, streams::Access b) {
    return a == b ? a : streams::Access::kUpdate;
  }

  // Cuts what overlaps at each begin and end.
  std::vector<Touch> Disjoint() {
    std::vector<uint64_t> cuts;
    for (const Touch& mark : marks_) {
      cuts.push_back(mark.range.begin);
      cuts.push_back(mark.range.end());
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    std::map<uint64_t, streams::Access> access_at;
    for (const Touch& mark : marks_) {
      auto cut = std::lower_bound(cuts.begin(), cuts.end(), mark.range.begin);
      for (; *cut < mark.range.end(); ++cut) {
        const auto at = access_at.emplace(*cut, mark.access).first;
        at->second = Both(at->second, mark.access);
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

  const KernelAccess& access_;
  const Memory& memory_;
  const std::vector<Interval> ranges_;
  std::vector<std::optional<Range>> places_;  // by origin
  OriginSet addresses_ = 0;
  std::vector<Touch> marks_;
};

}  // namespace

LaunchTouches TouchesOf(const KernelAccess& access, const Grid& grid,
                        std::span<const std::byte> parameters, const Memory& memory) {
  return Launch(access, grid, parameters, memory).Run();
}

}  // namespace replay
