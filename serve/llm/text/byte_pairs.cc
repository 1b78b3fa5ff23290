#include "serve/llm/text/byte_pairs.h"

#include <charconv>
#include <functional>
#include <queue>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "serve/llm/text/byte_letters.h"
#include "serve/llm/text/utf8.h"

namespace serve::llm {
namespace {

constexpr int32_t kNoToken = -1;

uint64_t PairOf(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

// A pair that may be merged. Another merge may have taken one of its tokens meanwhile, which is
// seen by their numbers.
struct Candidate {
  uint32_t rank;
  size_t at;
  int32_t left;
  int32_t right;

  bool operator>(const Candidate& other) const {
    return std::tie(rank, at) > std::tie(other.rank, other.at);
  }
};

}  // namespace

std::string TokenOfByte(uint8_t byte) { return absl::StrFormat("<0x%02X>", byte); }

std::optional<uint8_t> ByteOfToken(std::string_view token) {
  if (token.size() != 6 || token.substr(0, 3) != "<0x" || token[5] != '>') return std::nullopt;
  uint8_t byte = 0;
  const char* const end = token.data() + 5;
  const std::from_chars_result result = std::from_chars(token.data() + 3, end, byte, 16);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return byte;
}

absl::StatusOr<BytePairs> BytePairs::MakeUntrusted(const std::vector<std::string>& tokens,
                                                   const std::vector<TokenMerge>& merges,
                                                   const PairRules& rules) {
  BytePairs pairs;
  pairs.rules_ = rules;
  absl::flat_hash_map<std::string_view, int32_t> known;
  for (size_t i = 0; i < tokens.size(); ++i) known.emplace(tokens[i], static_cast<int32_t>(i));
  for (int i = 0; i < 256; ++i) {
    const uint8_t byte = static_cast<uint8_t>(i);
    const auto found = known.find(rules.byte_level ? LetterOfByte(byte) : TokenOfByte(byte));
    pairs.token_of_byte_[i] = found == known.end() ? kNoToken : found->second;
  }
  for (const TokenMerge& merge : merges) {
    const auto first = known.find(merge.left), second = known.find(merge.right);
    const auto joined = known.find(absl::StrCat(merge.left, merge.right));
    if (first == known.end() || second == known.end() || joined == known.end())
      return absl::InvalidArgumentError(
          absl::StrCat("has a merge (number ", merge.rank, ") whose parts or whole are no tokens"));
    pairs.merges_.emplace(PairOf(first->second, second->second), Merge{merge.rank, joined->second});
  }
  for (const auto& [text, token] : known) {
    const bool character = !rules.byte_level && CharacterBytes(text) == text.size();
    if (rules.whole_pieces || character)
      pairs.token_of_text_.emplace(rules.byte_level ? BytesOfLetters(text) : std::string(text),
                                   token);
  }
  return pairs;
}

const BytePairs::Merge* BytePairs::Find(int32_t left, int32_t right) const {
  const auto found = merges_.find(PairOf(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

void BytePairs::Append(std::string_view piece, std::vector<int32_t>* tokens) const {
  if (rules_.whole_pieces) {
    const auto whole = token_of_text_.find(absl::string_view(piece.data(), piece.size()));
    if (whole != token_of_text_.end()) return tokens->push_back(whole->second);
  }
  const std::vector<int32_t> merged =
      Merged(rules_.byte_level ? BytesOf(piece) : CharactersOf(piece));
  tokens->insert(tokens->end(), merged.begin(), merged.end());
}

std::vector<int32_t> BytePairs::BytesOf(std::string_view piece) const {
  std::vector<int32_t> tokens;
  for (const char letter : piece) {
    const int32_t token = token_of_byte_[static_cast<uint8_t>(letter)];
    if (token != kNoToken) tokens.push_back(token);
  }
  return tokens;
}

std::vector<int32_t> BytePairs::CharactersOf(std::string_view piece) const {
  std::vector<int32_t> tokens;
  bool unknown_before = false;
  for (size_t at = 0; at < piece.size();) {
    const size_t bytes = CharacterLength(static_cast<uint8_t>(piece[at]));
    const std::string_view character = piece.substr(at, bytes);
    at += bytes;
    const auto found = token_of_text_.find(absl::string_view(character.data(), bytes));
    const bool known = found != token_of_text_.end();
    if (known) tokens.push_back(found->second);
    const bool unknown = !known && !(rules_.byte_fallback && AppendBytesOf(character, &tokens));
    if (unknown && rules_.unknown.has_value() && !(rules_.fuse_unknown && unknown_before))
      tokens.push_back(*rules_.unknown);
    unknown_before = unknown;
  }
  return tokens;
}

// False, and nothing is appended: one of the bytes is no token.
bool BytePairs::AppendBytesOf(std::string_view character, std::vector<int32_t>* tokens) const {
  const size_t before = tokens->size();
  for (const char letter : character) {
    const int32_t token = token_of_byte_[static_cast<uint8_t>(letter)];
    if (token == kNoToken) {
      tokens->resize(before);
      return false;
    }
    tokens->push_back(token);
  }
  return true;
}

// Tokens stay at the place of their first part; places of others become empty and are skipped.
std::vector<int32_t> BytePairs::Merged(std::vector<int32_t> tokens) const {
  const size_t end = tokens.size();
  std::vector<size_t> next(end), before(end);
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<Candidate>> queue;
  const auto offer = [&](size_t at) {
    if (at >= end || next[at] >= end) return;
    const int32_t left = tokens[at], right = tokens[next[at]];
    if (const Merge* const merge = Find(left, right); merge != nullptr)
      queue.push({merge->rank, at, left, right});
  };
  for (size_t i = 0; i < end; ++i) {
    next[i] = i + 1;
    before[i] = i == 0 ? end : i - 1;
  }
  for (size_t i = 0; i < end; ++i) offer(i);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    const size_t second = next[best.at];
    if (tokens[best.at] != best.left || second >= end || tokens[second] != best.right) continue;
    tokens[best.at] = Find(best.left, best.right)->token;
    tokens[second] = kNoToken;
    next[best.at] = next[second];
    if (next[best.at] < end) before[next[best.at]] = best.at;
    offer(best.at);
    offer(before[best.at]);
  }
  std::erase(tokens, kNoToken);
  return tokens;
}

}  // namespace serve::llm
