#include "daemon/control/replay_verdicts.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <iterator>
#include <span>
#include <tuple>
#include <utility>

#define XXH_INLINE_ALL
#define XXH_NO_STREAM
#include <xxhash.h>

namespace control {
namespace {

constexpr uint64_t kMagic = 0x0a53445256574e4c;  // "LNWVRDS\n"
constexpr uint64_t kVerdictNumberMax = uint64_t{1} << 53;
constexpr size_t kEntryNumbers = 7;
enum HeadNumber : size_t { kMagicAt, kVersionAt, kChecksumAt, kCountAt, kHeadNumbers };
static_assert(ReplayVerdicts::kFileBytesMax ==
              (kHeadNumbers + ReplayVerdicts::kMax * kEntryNumbers) * sizeof(uint64_t));

uint64_t ChecksumOf(std::span<const uint64_t> numbers) {
  const std::span<const uint64_t> checked = numbers.subspan(kCountAt);
  return XXH3_64bits(checked.data(), checked.size_bytes());
}

void AppendEntry(const KeptVerdict& kept, std::vector<uint64_t>* numbers) {
  numbers->insert(numbers->end(), {kept.verdict.body, kept.verdict.permille, kept.verdict.replays,
                                   kept.agreed, kept.starts, static_cast<uint64_t>(kept.measured_s),
                                   static_cast<uint64_t>(kept.used_s)});
}

bool TakeEntryUntrusted(std::span<const uint64_t> entry, KeptVerdict* kept) {
  for (size_t i = 1; i < kEntryNumbers; ++i) {
    if (entry[i] > kVerdictNumberMax) return false;
  }
  if (entry[1] > ipc::kReplayPermilleMax || entry[2] > 1 || entry[3] == 0) return false;
  kept->verdict = {entry[0], static_cast<uint32_t>(entry[1]), static_cast<uint32_t>(entry[2])};
  kept->agreed = entry[3];
  kept->starts = entry[4];
  kept->measured_s = static_cast<int64_t>(entry[5]);
  kept->used_s = static_cast<int64_t>(entry[6]);
  return ipc::IsSound(kept->verdict);
}

int64_t Bounded(int64_t seconds) {
  return std::clamp<int64_t>(seconds, 0, static_cast<int64_t>(kVerdictNumberMax));
}

uint64_t StartsInForce(uint64_t agreed) {
  uint64_t starts = ReplayVerdicts::kFirstStarts;
  for (uint64_t i = 1; i < agreed && starts < ReplayVerdicts::kMostStarts; ++i) starts *= 2;
  return starts;
}

// Two measurements of one second are told apart by the rest.
auto MeasurementOf(const KeptVerdict& kept) {
  return std::make_tuple(kept.measured_s, kept.agreed, kept.verdict.replays, kept.verdict.permille);
}

KeptVerdict Merged(const KeptVerdict& a, const KeptVerdict& b) {
  KeptVerdict merged = MeasurementOf(a) < MeasurementOf(b) ? b : a;
  if (MeasurementOf(a) == MeasurementOf(b)) merged.starts = std::max(a.starts, b.starts);
  merged.used_s = std::max(a.used_s, b.used_s);
  return merged;
}

}  // namespace

const KeptVerdict* ReplayVerdicts::Find(uint64_t body) const {
  const std::map<uint64_t, KeptVerdict>::const_iterator found = kept_.find(body);
  return found == kept_.end() ? nullptr : &found->second;
}

// The last measurement is the latest one, also where the clock went back.
void ReplayVerdicts::Measured(const ipc::ReplayVerdict& verdict, int64_t now_s) {
  assert(ipc::IsSound(verdict));
  KeptVerdict fresh{.verdict = verdict, .measured_s = Bounded(now_s), .used_s = Bounded(now_s)};
  if (const KeptVerdict* const before = Find(verdict.body); before != nullptr) {
    fresh.measured_s = Bounded(std::max(fresh.measured_s, before->measured_s + 1));
    fresh.used_s = std::max(fresh.used_s, before->used_s);
    if (before->verdict.replays == verdict.replays)
      fresh.agreed = std::min(before->agreed + 1, kVerdictNumberMax);
  }
  kept_[verdict.body] = fresh;
  MakeRoom();
}

void ReplayVerdicts::Taken(const ipc::ReplayVerdict& verdict, int64_t now_s) {
  const std::map<uint64_t, KeptVerdict>::iterator found = kept_.find(verdict.body);
  if (found == kept_.end() || found->second.verdict != verdict) return;
  found->second.starts = std::min(found->second.starts + 1, kVerdictNumberMax);
  found->second.used_s = std::max(found->second.used_s, Bounded(now_s));
}

std::vector<ipc::ReplayVerdict> ReplayVerdicts::InForce() const {
  std::vector<ipc::ReplayVerdict> verdicts;
  for (const std::pair<const uint64_t, KeptVerdict>& entry : kept_) {
    if (entry.second.starts < StartsInForce(entry.second.agreed))
      verdicts.push_back(entry.second.verdict);
  }
  return verdicts;
}

void ReplayVerdicts::Merge(const ReplayVerdicts& other) {
  for (const std::pair<const uint64_t, KeptVerdict>& entry : other.kept_) {
    const auto [mine, is_new] = kept_.try_emplace(entry.first, entry.second);
    if (!is_new) mine->second = Merged(mine->second, entry.second);
  }
  MakeRoom();
}

void ReplayVerdicts::MakeRoom() {
  while (kept_.size() > kMax) {
    kept_.erase(std::min_element(kept_.begin(), kept_.end(), [](const auto& a, const auto& b) {
      return a.second.used_s < b.second.used_s;
    }));
  }
}

std::string ReplayVerdicts::Encode() const {
  std::vector<uint64_t> numbers = {kMagic, kVersion, 0, kept_.size()};
  for (const std::pair<const uint64_t, KeptVerdict>& entry : kept_)
    AppendEntry(entry.second, &numbers);
  numbers[kChecksumAt] = ChecksumOf(numbers);
  std::string file(numbers.size() * sizeof(uint64_t), '\0');
  std::memcpy(file.data(), numbers.data(), file.size());
  return file;
}

absl::StatusOr<ReplayVerdicts> ReplayVerdicts::DecodeUntrusted(std::string_view file) {
  const absl::Status damaged = absl::InvalidArgumentError("is damaged");
  std::vector<uint64_t> numbers(file.size() / sizeof(uint64_t));
  if (!numbers.empty()) std::memcpy(numbers.data(), file.data(), numbers.size() * sizeof(uint64_t));
  if (numbers.empty() || numbers[kMagicAt] != kMagic)
    return absl::InvalidArgumentError("is no file of replay verdicts");
  if (numbers.size() > kVersionAt && numbers[kVersionAt] != kVersion)
    return absl::InvalidArgumentError("is of another version of Laneway");
  if (numbers.size() < kHeadNumbers) return absl::InvalidArgumentError("is cut short");
  const uint64_t count = numbers[kCountAt];
  if (count > kMax) return damaged;
  const size_t bytes = (kHeadNumbers + count * kEntryNumbers) * sizeof(uint64_t);
  if (file.size() < bytes) return absl::InvalidArgumentError("is cut short");
  if (file.size() != bytes || numbers[kChecksumAt] != ChecksumOf(numbers)) return damaged;
  ReplayVerdicts verdicts;
  for (size_t at = kHeadNumbers; at < numbers.size(); at += kEntryNumbers) {
    KeptVerdict kept;
    if (!TakeEntryUntrusted(std::span(numbers).subspan(at, kEntryNumbers), &kept)) return damaged;
    const bool ascends =
        verdicts.kept_.empty() || std::prev(verdicts.kept_.end())->first < kept.verdict.body;
    if (!ascends) return damaged;
    verdicts.kept_.emplace_hint(verdicts.kept_.end(), kept.verdict.body, kept);
  }
  return verdicts;
}

}  // namespace control
