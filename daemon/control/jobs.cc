#include "daemon/control/jobs.h"

#include <algorithm>
#include <cassert>
#include <span>

namespace control {
namespace {

constexpr char kPurpose[] = "job";

std::span<const std::byte> BytesOf(const ipc::JobTerms& terms) {
  return std::as_bytes(std::span(&terms, 1));
}

}  // namespace

absl::Status Jobs::LoadSeal(const std::string& runtime_dir) {
  const absl::StatusOr<Seal> seal = Seal::Load(runtime_dir);
  if (seal.ok()) seal_ = *seal;
  return seal.status();
}

uint64_t Jobs::NewNumber() {
  const uint64_t number = next_;
  Take(number, 0);
  return number;
}

ipc::JobTerms Jobs::New(ipc::JobTerms attributes) {
  attributes.number = next_;
  attributes.id = RandomId();
  Remember(attributes);
  return attributes;
}

ipc::JobTicket Jobs::TicketOf(const ipc::JobTerms& terms) const {
  assert(terms.id != 0);
  return {terms, seal_.Of(kPurpose, BytesOf(terms))};
}

std::optional<ipc::JobTerms> Jobs::Join(const ipc::JobTicket& ticket) {
  ipc::JobTerms terms = ticket.terms;
  if (terms.id == 0 || !seal_.Is(ticket.seal, kPurpose, BytesOf(terms))) return std::nullopt;
  const std::map<uint64_t, ipc::JobTerms>::const_iterator known = by_id_.find(terms.id);
  if (known != by_id_.end()) return known->second;
  if (ids_.contains(terms.number)) terms.number = next_;  // given to another while it was unknown
  Remember(terms);
  return terms;
}

void Jobs::Adopt(const ipc::JobTerms& terms) {
  terms.id == 0 ? Take(terms.number, 0) : Remember(terms);
}

std::optional<ipc::JobTerms> Jobs::Find(uint64_t number) const {
  const std::map<uint64_t, uint64_t>::const_iterator id = ids_.find(number);
  const std::map<uint64_t, ipc::JobTerms>::const_iterator found =
      id == ids_.end() ? by_id_.end() : by_id_.find(id->second);
  if (found == by_id_.end()) return std::nullopt;
  return found->second;
}

void Jobs::Change(const ipc::JobTerms& terms) {
  const std::map<uint64_t, ipc::JobTerms>::iterator known = by_id_.find(terms.id);
  if (known != by_id_.end()) known->second = terms;
}

void Jobs::Remember(const ipc::JobTerms& terms) {
  by_id_[terms.id] = terms;
  Take(terms.number, terms.id);
}

void Jobs::Take(uint64_t number, uint64_t id) {
  next_ = std::max(next_, number + 1);
  ids_[number] = id;
  if (ids_.size() <= kJobsMax) return;
  by_id_.erase(ids_.begin()->second);
  ids_.erase(ids_.begin());
}

}  // namespace control
