// Which addresses a value may hold: the abstract values of the analysis in kernel_access.h.
//
// A kernel gets its addresses from 8-byte words of its parameters, from variables of its module,
// and from memory. Each of these sources is an *origin*, numbered within one kernel. A value of the
// kernel is described by
//   - the origins whose bits flow into it at all (`touched`), and
//   - alternatives: each is a set of origins that are added up. `p + i` is one alternative {p}, a
//   value chosen between
//     p and q is two, {p} and {q}. A plain number is the empty alternative.
// In C and in CUDA a sum holds at most one address, and stays within the allocation of that one. So
// an access is attributed when each alternative of its address holds an origin that is an address;
// which origins are is known at the launch (launch_ranges.h). Eight bytes from memory may be an
// address that no origin tells: an alternative with them is not attributed, unless they were scaled
// as an index is.
//
// Values form a lattice of bounded height: Join goes up, and the top says that nothing is known.
// Thread safety: values.
#pragma once

#include <cstdint>
#include <vector>

namespace replay {

using OriginSet = uint64_t;  // a bit each: a kernel has at most 62 origins, and the two below
inline constexpr uint32_t kOriginsMax = 62;
// An address of local or shared memory, which no other kernel sees.
inline constexpr OriginSet kPrivate = 1ull << 62;
// Eight bytes that were read from memory: an address or a number.
inline constexpr OriginSet kLoaded = 1ull << 63;

class Origins {
 public:
  Origins() = default;  // the bottom: no value has come yet
  static Origins Number();
  static Origins Of(OriginSet one);  // an address, or eight bytes that may be one
  static Origins Unknown();

  bool bottom() const { return !unknown_ && alternatives_.empty(); }
  bool unknown() const { return unknown_; }
  OriginSet touched() const { return touched_; }
  const std::vector<OriginSet>& alternatives() const { return alternatives_; }

  // The value may be this one, too. True when that is new.
  bool Join(const Origins& other);
  // The two added, subtracted or merged bit by bit.
  Origins Plus(const Origins& other) const;
  // Multiplied, shifted or divided: no address any more, though addresses' bits went into it.
  Origins Scaled() const;

  bool operator==(const Origins&) const = default;

 private:
  void Add(OriginSet alternative);

  bool unknown_ = false;
  OriginSet touched_ = 0;
  std::vector<OriginSet> alternatives_;  // none holds another; ascending
};

}  // namespace replay
