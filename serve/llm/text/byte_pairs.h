// Byte-pair merging: of two tokens beside each other, the pair that the list of merges has first
// becomes one token, the leftmost first among equals, until no pair is in the list. A heap keeps
// the time at n log n: a piece may be as long as the text.
//
// Thread safety: const methods from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"

namespace serve::llm {

class BytePairs {
 public:
  // `tokens` by number, and `merges` by rank, in letters of bytes. `whole_pieces`: a piece that is
  // a token stays one, whatever the merges say (Llama 3). A failure is the end of a sentence.
  static absl::StatusOr<BytePairs> MakeUntrusted(
      const std::vector<std::string>& tokens,
      const std::vector<std::pair<std::string, std::string>>& merges, bool whole_pieces);

  // Appends the tokens of a piece. A byte that is no token of the vocabulary has none.
  void Append(std::string_view piece, std::vector<int32_t>* tokens) const;

 private:
  struct Merge {
    uint32_t rank;
    int32_t token;
  };
  const Merge* Find(int32_t left, int32_t right) const;
  std::vector<int32_t> Merged(std::vector<int32_t> tokens) const;

  absl::flat_hash_map<std::string, int32_t> token_of_bytes_;  // of whole pieces
  absl::flat_hash_map<uint64_t, Merge> merges_;               // by the pair
  int32_t token_of_byte_[256];
  bool whole_pieces_ = false;
};

}  // namespace serve::llm
