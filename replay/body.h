// A body: operations that came in a row several times, with the words of their arguments that
// differed as patches. Filled with the words of one occurrence, a body is that occurrence, byte for
// byte.
//
// A body does not change: what is made of it elsewhere, such as an executable graph, is right for
// as long as the body is. Thread safety: functions without state; values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "replay/op_stream.h"

namespace replay {

using BodyId = uint32_t;

struct Patch {
  uint32_t op = 0;  // of the body
  Word word;        // of its arguments
};

struct Body {
  BodyId id = 0;               // of this body alone, also after it is gone
  OpStream ops;                // patched words are those of some occurrence
  std::vector<Patch> patches;  // by operation, then by offset
};

// How many operations of `ops` from `from` on have the keys of the body's first ones.
size_t EqualKeys(const Body& body, const OpStream& ops, size_t from);

// The words in which `ops` from `from` on differ from the body, and which are no patches yet.
// REQUIRES: all keys of the body are equal.
std::vector<Patch> DifferencesOf(const Body& body, const OpStream& ops, size_t from,
                                 const Callees& callees);

// The same operations with more patches.
Body WithPatches(const Body& body, std::span<const Patch> more, BodyId id);

// The operations [begin, end) with their patches.
Body PartOf(const Body& body, size_t begin, size_t end, BodyId id);

// Whether the arguments are those of operation `i` but for its patches, whose words are added to
// `values`; otherwise nothing is added. REQUIRES: `values` has those of all earlier patches, and
// the keys are equal.
bool MatchArguments(const Body& body, size_t i, std::span<const std::byte> arguments,
                    std::vector<uint64_t>* values);

// Adds the body's first `count` operations, with these values in their patches. False: `out` is
// full. REQUIRES: a value for each patch of those operations, in order.
bool Fill(const Body& body, size_t count, std::span<const uint64_t> values, OpStream* out);

}  // namespace replay
