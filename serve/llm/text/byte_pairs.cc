#include "serve/llm/text/byte_pairs.h"

#include <functional>
#include <queue>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "serve/llm/text/byte_letters.h"

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

absl::StatusOr<BytePairs> BytePairs::MakeUntrusted(
    const std::vector<std::string>& tokens,
    const std::vector<std::pair<std::string, std::string>>& merges, bool whole_pieces) {
  BytePairs pairs;
  pairs.whole_pieces_ = whole_pieces;
  absl::flat_hash_map<std::string_view, int32_t> known;
  for (size_t i = 0; i < tokens.size(); ++i) known.emplace(tokens[i], static_cast<int32_t>(i));
  for (int byte = 0; byte < 256; ++byte) {
    const auto found = known.find(LetterOfByte(static_cast<uint8_t>(byte)));
    pairs.token_of_byte_[byte] = found == known.end() ? kNoToken : found->second;
  }
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    const auto first = known.find(left), second = known.find(right);
    const auto joined = known.find(absl::StrCat(left, right));
    if (first == known.end() || second == known.end() || joined == known.end())
      return absl::InvalidArgumentError(
          absl::StrCat("has a merge (number ", rank, ") whose parts or whole are no tokens"));
    pairs.merges_.emplace(PairOf(first->second, second->second),
                          Merge{static_cast<uint32_t>(rank), joined->second});
  }
  if (whole_pieces) {
    for (const auto& [letters, token] : known)
      pairs.token_of_bytes_.emplace(BytesOfLetters(letters), token);
  }
  return pairs;
}

const BytePairs::Merge* BytePairs::Find(int32_t left, int32_t right) const {
  const auto found = merges_.find(PairOf(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

void BytePairs::Append(std::string_view piece, std::vector<int32_t>* tokens) const {
  if (whole_pieces_) {
    const auto whole = token_of_bytes_.find(std::string(piece));
    if (whole != token_of_bytes_.end()) return tokens->push_back(whole->second);
  }
  std::vector<int32_t> bytes;
  for (const char letter : piece) {
    const int32_t token = token_of_byte_[static_cast<uint8_t>(letter)];
    if (token != kNoToken) bytes.push_back(token);
  }
  const std::vector<int32_t> merged = Merged(std::move(bytes));
  tokens->insert(tokens->end(), merged.begin(), merged.end());
}

// Tokens stay at the place of their first byte; places of others become empty and are skipped.
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
