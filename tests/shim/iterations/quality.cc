#include "tests/shim/iterations/quality.h"

#include <zstd.h>

#include <algorithm>
#include <cassert>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "shim/iterations/detector.h"

namespace iterations_test {

using shim::iterations::RecordedOp;

namespace {

constexpr size_t kRoundMax = 4;  // iterations of networks that are trained by turns

const std::filesystem::path& Directory() {
  static const std::filesystem::path path = LANEWAY_STREAMS;
  return path;
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// The first label at which a round of one or more iterations is over twice in a row; -1: never.
long TwoEqualRounds(const std::vector<RecordedOp>& ops, const std::vector<size_t>& labels) {
  const auto same = [&](size_t a, size_t b) {
    if (labels[a + 1] - labels[a] != labels[b + 1] - labels[b]) return false;
    for (size_t i = 0; i < labels[a + 1] - labels[a]; ++i) {
      if (ops[labels[a] + i].op.identity != ops[labels[b] + i].op.identity) return false;
    }
    return true;
  };
  for (size_t end = 2; end < labels.size(); ++end) {
    for (size_t round = 1; round <= kRoundMax && 2 * round <= end; ++round) {
      size_t equal = 0;
      while (equal < round && same(end - 1 - equal, end - 1 - equal - round)) ++equal;
      if (equal == round) return static_cast<long>(end);
    }
  }
  return -1;
}

}  // namespace

Quality Measure(const std::vector<RecordedOp>& ops) {
  shim::iterations::Detector detector;
  Quality quality;
  std::vector<size_t> labels, found, work(ops.size() + 1, 0);  // computing operations before
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].marked) labels.push_back(i);
    if (detector.Next(ops[i].op).boundary) found.push_back(i);
    work[i + 1] = work[i] + ops[i].op.computes;
  }
  quality.ops = ops.size();
  quality.labels = labels.size();
  quality.boundaries = found.size();
  quality.bodies = detector.bodies();
  constexpr size_t kNone = SIZE_MAX;
  std::vector<size_t> labels_found;  // per boundary: its label, or kNone
  size_t from_label = 0;
  for (const size_t boundary : found) {
    size_t label = from_label;  // the first one not yet found that this may be
    while (label < labels.size() && work[labels[label]] < work[boundary]) ++label;
    const bool right = label < labels.size() && work[labels[label]] == work[boundary];
    labels_found.push_back(right ? label : kNone);
    if (right) from_label = label + 1;
  }
  for (size_t i = 0; i < found.size(); ++i) {
    const size_t label = labels_found[i];
    const bool right = label != kNone;
    if (!quality.locked && right && i + 2 < found.size() && labels_found[i + 1] != kNone &&
        labels_found[i + 2] != kNone) {
      quality.locked = true;
      quality.lock_delay = static_cast<long>(label) - TwoEqualRounds(ops, labels);
      quality.after_labels = labels.size() - label;
    }
    quality.all_right += right;
    if (!quality.locked) continue;
    ++quality.after_boundaries;
    quality.right += right;
    quality.exact += right && labels[label] == found[i];
  }
  return quality;
}

std::vector<StreamName> AllStreams() {
  std::ifstream list(Directory() / "unseen.txt");
  const std::set<std::string> unseen{std::istream_iterator<std::string>(list), {}};
  std::vector<StreamName> names;
  for (const std::filesystem::directory_entry& entry :
       std::filesystem::directory_iterator(Directory())) {
    const std::string file = entry.path().filename();
    if (!file.ends_with(".ops.zst")) continue;
    const std::string name = file.substr(0, file.size() - 8);
    names.push_back({name, unseen.contains(name)});
  }
  std::sort(names.begin(), names.end(),
            [](const StreamName& a, const StreamName& b) { return a.name < b.name; });
  return names;
}

std::vector<RecordedOp> ReadStream(const std::string& name) {
  const std::string packed = ReadFile(Directory() / (name + ".ops.zst"));
  const unsigned long long bytes = ZSTD_getFrameContentSize(packed.data(), packed.size());
  assert(bytes < (1u << 30));
  std::vector<std::byte> raw(bytes);
  const size_t got = ZSTD_decompress(raw.data(), raw.size(), packed.data(), packed.size());
  assert(got == raw.size());
  const std::optional<std::vector<RecordedOp>> ops =
      shim::iterations::DecodeStreamUntrusted(std::span(raw).first(got));
  assert(ops.has_value());
  return *ops;
}

}  // namespace iterations_test
