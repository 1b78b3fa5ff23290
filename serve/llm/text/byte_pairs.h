// Byte-pair merging: of two tokens beside each other, the pair that the list of merges has first
// becomes one token, the leftmost first among equals, until no pair is in the list. A heap keeps
// the time at n log n: a piece may be as long as the text.
//
// A piece begins as its bytes (byte-level BPE) or as its characters (SentencePiece).
//
// Thread safety: const methods from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"

namespace serve::llm {

struct PairRules {
  bool byte_level = true;     // tokens are in letters of bytes (byte_letters.h)
  bool whole_pieces = false;  // a piece that is a token stays one, whatever the merges say
  bool byte_fallback =
      false;  // a character that is no token becomes the tokens <0xHH> of its bytes
  std::optional<int32_t> unknown;  // the token of what is no token; without it, that is left out
  bool fuse_unknown = false;       // one for all beside each other
};

struct TokenMerge {
  std::string left;
  std::string right;
  uint32_t rank;
};

// "<0x0A>", as vocabularies with byte fallback spell bytes.
std::string TokenOfByte(uint8_t byte);
// Nothing: the token spells no byte.
std::optional<uint8_t> ByteOfToken(std::string_view token);

class BytePairs {
 public:
  // `tokens` by number. A failure is the end of a sentence. REQUIRES: rules.unknown is one of them.
  static absl::StatusOr<BytePairs> MakeUntrusted(const std::vector<std::string>& tokens,
                                                 const std::vector<TokenMerge>& merges,
                                                 const PairRules& rules);

  // Appends the tokens of a piece. REQUIRES: valid UTF-8.
  void Append(std::string_view piece, std::vector<int32_t>* tokens) const;

 private:
  struct Merge {
    uint32_t rank;
    int32_t token;
  };
  const Merge* Find(int32_t left, int32_t right) const;
  std::vector<int32_t> BytesOf(std::string_view piece) const;
  std::vector<int32_t> CharactersOf(std::string_view piece) const;
  bool AppendBytesOf(std::string_view character, std::vector<int32_t>* tokens) const;
  std::vector<int32_t> Merged(std::vector<int32_t> tokens) const;

  PairRules rules_;
  absl::flat_hash_map<std::string, int32_t> token_of_text_;  // of characters and whole pieces
  absl::flat_hash_map<uint64_t, Merge> merges_;              // by the pair
  int32_t token_of_byte_[256];
};

}  // namespace serve::llm
