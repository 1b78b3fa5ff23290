#include "replay/covered_ranges.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "replay/affine_forms.h"
#include "replay/guarded_places.h"

namespace replay {
namespace {

using scheduler::streams::Range;
using Int = __int128;
using Steps = GuardedPlaces::Steps;

constexpr Int kPiecesMax = 1024;  // that are looked at one by one

struct Piece {
  Int begin = 0, end = 0;
};
using Pieces = std::vector<Piece>;  // ascending and apart

void Merge(Pieces* pieces) {
  std::sort(pieces->begin(), pieces->end(),
            [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
  Pieces merged;
  for (const Piece& piece : *pieces) {
    if (!merged.empty() && piece.begin <= merged.back().end) {
      merged.back().end = std::max(merged.back().end, piece.end);
    } else {
      merged.push_back(piece);
    }
  }
  *pieces = std::move(merged);
}

// The pieces again at each step. Where they are too many, the first step's alone: what is left out
// counts as not covered.
void Repeat(const Steps& steps, Pieces* pieces) {
  const bool leaves_no_gap = std::all_of(pieces->begin(), pieces->end(), [&](const Piece& piece) {
    return piece.end - piece.begin >= steps.step;
  });
  if (leaves_no_gap) {
    for (Piece& piece : *pieces) piece.end += steps.step * (steps.count - 1);
  } else if (static_cast<Int>(pieces->size()) * steps.count <= kPiecesMax) {
    const Pieces first = *pieces;
    for (Int i = 1; i < steps.count; ++i) {
      for (const Piece& piece : first)
        pieces->push_back({piece.begin + i * steps.step, piece.end + i * steps.step});
    }
  }
  Merge(pieces);
}

}  // namespace

std::vector<Range> CoveredRanges(const AffineForms& forms, std::span<const CertainStore> stores) {
  std::map<std::vector<Steps>, Pieces> by_steps;  // unrolled loops store several pieces at a step
  for (const CertainStore& store : stores) {
    const std::optional<GuardedPlaces> places = PlacesOf(forms, store.address, store.conditions);
    if (places.has_value() && places->exact && places->reached)
      by_steps[places->steps].push_back({places->begin, places->begin + store.bytes});
  }
  Pieces all;
  for (auto& [steps, pieces] : by_steps) {
    Merge(&pieces);
    for (const Steps& each : steps) Repeat(each, &pieces);
    all.insert(all.end(), pieces.begin(), pieces.end());
  }
  Merge(&all);
  std::vector<Range> ranges;
  for (const Piece& piece : all)
    ranges.push_back(
        {static_cast<uint64_t>(piece.begin), static_cast<uint64_t>(piece.end - piece.begin)});
  return ranges;
}

}  // namespace replay
