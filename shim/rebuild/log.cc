#include "shim/rebuild/log.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace shim {
namespace {

constexpr int kSubject = 0;
constexpr int kReferred = 1;

// Objects of other kinds have few settings: those are found in the chain.
bool HasMany(ObjectName subject) {
  return subject.kind == ipc::HandleKind::kNone || subject.kind == ipc::HandleKind::kGraphExec;
}

}  // namespace

// --- chains: the entries of one object -----------------------------------------------------------

// Names are small numbers that are used again, so an array by name serves as the map.
RebuildLog::Chains* RebuildLog::ChainsOf(ObjectName object) {
  std::vector<Chains>& names = by_name_[static_cast<size_t>(object.kind)];
  const size_t index = static_cast<size_t>(object.id);
  if (index >= names.size()) names.resize(std::max(index + 1, names.size() * 2));
  return &names[index];
}

const RebuildLog::Chains* RebuildLog::FindChains(ObjectName object) const {
  const std::vector<Chains>& names = by_name_[static_cast<size_t>(object.kind)];
  const size_t index = static_cast<size_t>(object.id);
  return index < names.size() ? &names[index] : nullptr;
}

void RebuildLog::Link(uint32_t index, int which, ObjectName object) {
  if (object.kind == ipc::HandleKind::kNone) return;
  Chains* const chains = ChainsOf(object);
  const uint32_t next = chains->first[which];
  records_[index].after[which] = next;
  records_[index].before[which] = kNone;
  if (next != kNone) records_[next].before[which] = index;
  chains->first[which] = index;
}

void RebuildLog::Unlink(uint32_t index, int which, ObjectName object) {
  if (object.kind == ipc::HandleKind::kNone) return;
  const uint32_t before = records_[index].before[which];
  const uint32_t after = records_[index].after[which];
  if (before == kNone) {
    ChainsOf(object)->first[which] = after;
  } else {
    records_[before].after[which] = after;
  }
  if (after != kNone) records_[after].before[which] = before;
}

// The living entry of this setting, or kNone.
uint32_t RebuildLog::FindSetting(ObjectName subject, uint64_t detail) const {
  if (HasMany(subject)) {
    const auto found = many_.find({subject, detail});
    return found == many_.end() ? kNone : found->second;
  }
  const Chains* const chains = FindChains(subject);
  if (chains == nullptr) return kNone;
  uint32_t index = chains->first[kSubject];
  while (index != kNone && records_[index].detail != detail)
    index = records_[index].after[kSubject];
  return index;
}

// --- records -------------------------------------------------------------------------------------

uint32_t RebuildLog::TakeRecord() {
  if (free_.empty()) {
    records_.emplace_back();
    return static_cast<uint32_t>(records_.size() - 1);
  }
  const uint32_t index = free_.back();
  free_.pop_back();
  return index;
}

void RebuildLog::Free(uint32_t index) {
  Record& record = records_[index];
  message_bytes_ -= record.bytes;
  if (record.image != nullptr) image_bytes_ -= record.image->size();
  record.sequence = 0;
  record.outside.reset();
  record.image.reset();
  free_.push_back(index);
}

// It leaves its chains at once: its object's name may be given again.
void RebuildLog::EndRecord(uint32_t index, uint64_t position) {
  Record& record = records_[index];
  Unlink(index, kSubject, record.subject);
  Unlink(index, kReferred, record.refers_to);
  if (HasMany(record.subject)) many_.erase({record.subject, record.detail});
  record.end = position;
  ended_.push_back(index);
  --alive_;
}

// The worker has taken the messages that ended these records, so no successor needs the records.
void RebuildLog::ForgetConsumed(uint64_t consumed) {
  while (!ended_.empty() && records_[ended_.front()].end <= consumed) {
    Free(ended_.front());
    ended_.pop_front();
  }
}

// Once the log has overflowed nothing is added: the session cannot move any more (kLogTooLong).
RebuildLog::Token RebuildLog::Add(const Kept& kept, uint64_t position) {
  const base::MutexLock lock(&mutex_);
  const size_t image = kept.image == nullptr ? 0 : kept.image->size();
  if (message_bytes_ + kept.message.size() > limits_.message_bytes ||
      image_bytes_ + image > limits_.image_bytes) {
    overflowed_ = true;
  }
  if (overflowed_) return kNoToken;
  const uint32_t replaced = FindSetting(kept.subject, kept.detail);
  if (replaced != kNone) EndRecord(replaced, position);
  const uint32_t index = TakeRecord();
  Record& record = records_[index];
  record.sequence = ++last_sequence_;
  record.begin = position;
  record.end = kAlive;
  record.detail = kept.detail;
  record.subject = kept.subject;
  record.refers_to = kept.refers_to;
  record.op = kept.op;
  record.confirmed = !kept.awaits_reply;
  record.image = kept.image;
  record.bytes = static_cast<uint32_t>(kept.message.size());
  if (record.bytes > kInlineBytes) record.outside = std::make_unique<std::byte[]>(record.bytes);
  std::ranges::copy(kept.message,
                    record.outside != nullptr ? record.outside.get() : record.inside.data());
  message_bytes_ += record.bytes;
  image_bytes_ += image;
  Link(index, kSubject, record.subject);
  Link(index, kReferred, record.refers_to);
  if (HasMany(record.subject)) many_[{record.subject, record.detail}] = index;
  ++alive_;
  return index;
}

void RebuildLog::Confirm(Token token) {
  const base::MutexLock lock(&mutex_);
  if (token != kNoToken) records_[token].confirmed = true;
}

// The call failed, so its object never was: the record goes at once, not when the worker has come
// past a position.
void RebuildLog::Drop(Token token) {
  const base::MutexLock lock(&mutex_);
  if (token == kNoToken || records_[token].sequence == 0 || records_[token].end != kAlive) return;
  EndRecord(token, 0);
  ended_.pop_back();
  Free(token);
}

void RebuildLog::End(ObjectName object, uint64_t position, uint64_t consumed) {
  const base::MutexLock lock(&mutex_);
  ForgetConsumed(consumed);
  for (const int which : {kSubject, kReferred}) {
    for (;;) {
      const Chains* const chains = FindChains(object);
      if (chains == nullptr || chains->first[which] == kNone) break;
      EndRecord(chains->first[which], position);
    }
  }
}

void RebuildLog::EndDetail(ObjectName subject, uint64_t detail, uint64_t position,
                           uint64_t consumed) {
  const base::MutexLock lock(&mutex_);
  ForgetConsumed(consumed);
  const uint32_t index = FindSetting(subject, detail);
  if (index != kNone) EndRecord(index, position);
}

void RebuildLog::EndObjects(uint64_t position, uint64_t consumed) {
  const base::MutexLock lock(&mutex_);
  ForgetConsumed(consumed);
  for (uint32_t index = 0; index < records_.size(); ++index) {
    const Record& record = records_[index];
    if (record.sequence == 0 || record.end != kAlive) continue;
    if (record.subject.kind != ipc::HandleKind::kNone) EndRecord(index, position);
  }
}

std::vector<RebuildLog::Entry> RebuildLog::At(uint64_t position) const {
  const base::MutexLock lock(&mutex_);
  std::vector<std::pair<uint64_t, uint32_t>> wanted;  // sequence, index
  for (uint32_t index = 0; index < records_.size(); ++index) {
    const Record& record = records_[index];
    if (record.sequence != 0 && record.begin <= position && record.end > position)
      wanted.emplace_back(record.sequence, index);
  }
  std::sort(wanted.begin(), wanted.end());
  std::vector<Entry> entries;
  for (const auto& [sequence, index] : wanted) {
    const Record& record = records_[index];
    const std::byte* const bytes =
        record.outside != nullptr ? record.outside.get() : record.inside.data();
    entries.push_back({record.op,
                       index,
                       record.detail,
                       record.confirmed,
                       {bytes, bytes + record.bytes},
                       record.image});
  }
  return entries;
}

// The ring was rewound, and the messages behind `position` lie `by` bytes further on.
void RebuildLog::Shift(uint64_t position, uint64_t by) {
  const base::MutexLock lock(&mutex_);
  for (Record& record : records_) {
    if (record.sequence == 0) continue;
    if (record.begin > position) record.begin += by;
    if (record.end != kAlive && record.end > position) record.end += by;
  }
}

size_t RebuildLog::size() const {
  const base::MutexLock lock(&mutex_);
  return alive_;
}

bool RebuildLog::HasDetail(ObjectName subject, uint64_t detail) const {
  const base::MutexLock lock(&mutex_);
  return FindSetting(subject, detail) != kNone;
}

// Headers differ in their numbers, so the bodies alone are compared.
bool RebuildLog::HasSame(const Kept& kept) const {
  const base::MutexLock lock(&mutex_);
  const uint32_t index = FindSetting(kept.subject, kept.detail);
  if (index == kNone) return false;
  const Record& record = records_[index];
  const std::byte* const bytes = record.outside ? record.outside.get() : record.inside.data();
  const size_t header = sizeof(ipc::MessageHeader);
  return record.bytes == kept.message.size() && record.bytes >= header &&
         std::equal(kept.message.begin() + header, kept.message.end(), bytes + header);
}

}  // namespace shim
