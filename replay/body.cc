#include "replay/body.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace replay {
namespace {

bool ComesBefore(const Patch& a, const Patch& b) {
  return a.op != b.op ? a.op < b.op : a.word.offset < b.word.offset;
}

bool SameBytes(std::span<const std::byte> a, std::span<const std::byte> b, size_t begin,
               size_t end) {
  return begin == end || std::memcmp(a.data() + begin, b.data() + begin, end - begin) == 0;
}

}  // namespace

size_t EqualKeys(const Body& body, const OpStream& ops, size_t from) {
  const size_t most = std::min(body.ops.size(), ops.size() - from);
  size_t equal = 0;
  while (equal < most && body.ops.key(equal) == ops.key(from + equal)) ++equal;
  return equal;
}

std::vector<Patch> DifferencesOf(const Body& body, const OpStream& ops, size_t from,
                                 const Callees& callees) {
  std::vector<Patch> found;
  for (uint32_t i = 0; i < body.ops.size(); ++i) {
    const std::span<const std::byte> known = body.ops.at(i).arguments;
    const std::span<const std::byte> other = ops.at(from + i).arguments;
    if (SameBytes(known, other, 0, known.size())) continue;
    for (const Word& word : callees.words(body.ops.key(i).callee)) {
      const Patch patch = {i, word};
      if (SameBytes(known, other, word.offset, word.offset + word.bytes)) continue;
      if (!std::binary_search(body.patches.begin(), body.patches.end(), patch, ComesBefore))
        found.push_back(patch);
    }
  }
  return found;
}

Body WithPatches(const Body& body, std::span<const Patch> more, BodyId id) {
  Body made = body;
  made.id = id;
  made.patches.insert(made.patches.end(), more.begin(), more.end());
  std::sort(made.patches.begin(), made.patches.end(), ComesBefore);
  return made;
}

Body PartOf(const Body& body, size_t begin, size_t end, BodyId id) {
  Body part;
  part.id = id;
  part.ops = body.ops.Slice(begin, end);
  for (Patch patch : body.patches) {
    if (patch.op < begin || patch.op >= end) continue;
    patch.op -= static_cast<uint32_t>(begin);
    part.patches.push_back(patch);
  }
  return part;
}

bool MatchArguments(const Body& body, size_t i, std::span<const std::byte> arguments,
                    std::vector<uint64_t>* values) {
  const std::span<const std::byte> known = body.ops.at(i).arguments;
  assert(known.size() == arguments.size());
  const size_t before = values->size();
  size_t begin = 0;  // of what is not compared yet
  for (size_t p = before; p < body.patches.size() && body.patches[p].op == i; ++p) {
    const Word& word = body.patches[p].word;
    if (!SameBytes(known, arguments, begin, word.offset)) {
      values->resize(before);
      return false;
    }
    uint64_t value = 0;
    std::memcpy(&value, arguments.data() + word.offset, word.bytes);
    values->push_back(value);
    begin = word.offset + word.bytes;
  }
  if (SameBytes(known, arguments, begin, known.size())) return true;
  values->resize(before);
  return false;
}

bool Fill(const Body& body, size_t count, std::span<const uint64_t> values, OpStream* out) {
  size_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!out->Add(body.ops.at(i))) return false;
    const std::span<std::byte> arguments = out->MutableArguments(out->size() - 1);
    for (; next < body.patches.size() && body.patches[next].op == i; ++next) {
      const Word& word = body.patches[next].word;
      std::memcpy(arguments.data() + word.offset, &values[next], word.bytes);
    }
  }
  return true;
}

}  // namespace replay
