// Sets of small integers as bits, and square tables of them: what reachability and matchings over
// 10,000 nodes are computed with. Thread safety: as of std::vector.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace scheduler::streams {

constexpr int kWordBits = 64;

inline size_t WordsFor(int bits) { return (static_cast<size_t>(bits) + kWordBits - 1) / kWordBits; }

// A set of integers in [0, size).
class Bits {
 public:
  explicit Bits(int size) : words_(WordsFor(size)) {}

  bool Has(int i) const {
    return (words_[static_cast<size_t>(i) / kWordBits] >> (i % 64) & 1) != 0;
  }
  void Add(int i) { words_[static_cast<size_t>(i) / kWordBits] |= uint64_t{1} << (i % 64); }
  void Remove(int i) { words_[static_cast<size_t>(i) / kWordBits] &= ~(uint64_t{1} << (i % 64)); }
  void Fill() { words_.assign(words_.size(), ~uint64_t{0}); }
  std::span<const uint64_t> words() const { return words_; }

 private:
  std::vector<uint64_t> words_;
};

// One set of integers in [0, size) for each of as many rows.
class BitTable {
 public:
  explicit BitTable(int size)
      : words_a_row_(WordsFor(size)), words_(words_a_row_ * static_cast<size_t>(size)) {}

  bool Has(int row, int i) const {
    return (Row(row)[static_cast<size_t>(i) / kWordBits] >> (i % 64) & 1) != 0;
  }
  void Add(int row, int i) {
    Start(row)[static_cast<size_t>(i) / kWordBits] |= uint64_t{1} << (i % 64);
  }
  // Adds to a row what another row has of `from` and above.
  void AddRow(int row, int other, int from) {
    uint64_t* const into = Start(row);
    const uint64_t* const source = Start(other);
    for (size_t w = static_cast<size_t>(from) / kWordBits; w < words_a_row_; ++w)
      into[w] |= source[w];
  }
  std::span<const uint64_t> Row(int row) const {
    return std::span(words_).subspan(static_cast<size_t>(row) * words_a_row_, words_a_row_);
  }

 private:
  uint64_t* Start(int row) { return words_.data() + static_cast<size_t>(row) * words_a_row_; }

  size_t words_a_row_;
  std::vector<uint64_t> words_;
};

}  // namespace scheduler::streams
