#include "daemon/worker/shared_ranges.h"

#include <sys/random.h>

#include <algorithm>

namespace worker {

std::vector<Piece> SharedRange::PiecesAt(CUdeviceptr address) const {
  std::vector<Piece> there;
  for (const Piece& piece : pieces_)
    there.push_back({address + (piece.address - base()), piece.extent});
  return there;
}

SharedRanges& SharedRanges::Process() {
  static SharedRanges* const ranges = new SharedRanges;
  return *ranges;
}

SharedRanges::SharedRanges(size_t guest_extents_max) : guest_extents_max_(guest_extents_max) {
  ipc::ShareName name;
  if (Draw(&name)) worker_ = name.token[0];
}

bool SharedRanges::Draw(ipc::ShareName* name) {
  return getrandom(name->token, sizeof name->token, 0) == ssize_t{sizeof name->token};
}

std::shared_ptr<SharedRange> SharedRanges::Share(const Member& member, int device,
                                                 const std::vector<Piece>& pieces) {
  const std::shared_ptr<SharedRange> range = std::make_shared<SharedRange>(device, pieces);
  if (!Draw(&range->name_)) return nullptr;
  range->uid_ = member.uid;
  range->name_.worker = worker_;
  range->name_.range_bytes = BytesOf(pieces);
  range->holders_.push_back({member.session_id, range->base()});
  const base::MutexLock lock(&mutex_);
  ranges_[{range->name_.token[0], range->name_.token[1]}] = range;
  return range;
}

CUresult SharedRanges::Join(const Member& member, const ipc::ShareName& name, int device,
                            CUdeviceptr address, std::shared_ptr<SharedRange>* range) {
  if (name.worker != worker_) return CUDA_ERROR_NOT_SUPPORTED;
  const base::MutexLock lock(&mutex_);
  const auto found = ranges_.find({name.token[0], name.token[1]});
  // Another user's name is no name: the answer must not tell that there is such a range.
  if (found == ranges_.end() || found->second->uid_ != member.uid ||
      found->second->name_.range_bytes != name.range_bytes) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  SharedRange& shared = *found->second;
  if (shared.device_ != device) return CUDA_ERROR_NOT_SUPPORTED;
  const bool has =
      std::any_of(shared.holders_.begin(), shared.holders_.end(),
                  [&member](const auto& holder) { return holder.session_id == member.session_id; });
  if (has) return CUDA_ERROR_INVALID_CONTEXT;
  const size_t extents = shared.pieces_.size();
  if (extents > guest_extents_max_ - guest_extents_) return CUDA_ERROR_OUT_OF_MEMORY;
  guest_extents_ += extents;
  shared.holders_.push_back({member.session_id, address, extents});
  *range = found->second;
  return CUDA_SUCCESS;
}

// The driver keeps the memory while any session has it mapped.
void SharedRanges::Leave(const Environment& environment, const std::shared_ptr<SharedRange>& range,
                         uint64_t session_id, const std::vector<Piece>& mapped) {
  ExtentSource* const extents = environment.extents;
  for (const Piece& piece : mapped) Unmap(environment, piece);
  const base::MutexLock lock(&mutex_);
  std::vector<SharedRange::Holder>& holders = range->holders_;
  const bool owned = !holders.empty() && holders.front().session_id == session_id;
  for (const SharedRange::Holder& holder : holders) {
    if (holder.session_id == session_id) guest_extents_ -= holder.guest_extents;
  }
  std::erase_if(holders,
                [session_id](const auto& holder) { return holder.session_id == session_id; });
  if (holders.empty()) {
    ranges_.erase({range->name_.token[0], range->name_.token[1]});
    for (const Piece& piece : range->pieces_) extents->Free(piece.extent);
  } else if (owned) {
    const SharedRange::Holder& heir = holders.front();
    for (const Piece& piece : range->PiecesAt(heir.address)) {
      extents->ChangeOwner(piece.extent, {OwnerKind::kSession, heir.session_id}, piece.address,
                           heir.address);
    }
  }
}

}  // namespace worker
