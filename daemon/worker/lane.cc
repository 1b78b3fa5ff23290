// A session inside a lane uses what is mapped for it without asking anybody. So whatever changes
// here, mappings and books change together, and an extent goes only when no member has it mapped.
#include "daemon/worker/lane.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <map>

#include "ipc/driver_table.h"

namespace worker {

// Parts have no gaps, so the last one ends where the lane does.
uint64_t LaneMember::Lane::bytes() const {
  mutex.AssertHeld();
  return parts.empty() ? 0 : parts.back().address + parts.back().extent.bytes;
}

bool LaneMember::Lane::Contains(uint64_t offset, uint64_t bytes) const {
  const uint64_t end = offset + bytes;
  return bytes != 0 && end >= offset && end <= this->bytes();
}

void LaneMember::Lane::TellChanged() const {
  if (environment_.daemon == nullptr || own()) return;
  environment_.daemon->Post(ipc::control::LaneChanged{id});
}

// --- mappings ------------------------------------------------------------------------------------

void LaneMember::Lane::Unmap(LaneMember* member, const Piece& part) {
  member->guard_.AssertHeld();
  if (!member->books_.NoteUnmapped(part.address)) return;
  worker::Unmap(environment_, {member->base_ + part.address, part.extent});
}

void LaneMember::Lane::UnmapForAll(const Piece& part) {
  mutex.AssertHeld();
  for (LaneMember* const member : members) Unmap(member, part);
}

// The first member that maps another tenant's memory zeroes it.
CUresult LaneMember::Lane::Map(LaneMember* member) {
  mutex.AssertHeld();
  member->guard_.AssertHeld();
  CUresult result = CUDA_SUCCESS;
  for (Piece& part : parts) {
    if (result != CUDA_SUCCESS) break;
    if (member->books_.IsMapped(part.address) ||
        member->books_.Keeps(part.address, part.extent.bytes)) {
      continue;
    }
    const Piece here{member->base_ + part.address, part.extent};
    result = MapExtent(environment_, device, here.address, here.extent);
    if (result != CUDA_SUCCESS) break;
    member->books_.NoteMapped(part.address, part.extent.bytes);
    result = ClearPieces(environment_, device, {here});
    if (result == CUDA_SUCCESS) part.extent.clear = false;
  }
  member->CountMapped();
  CheckOwners();
  return result;
}

void LaneMember::Lane::MapForAll() {
  mutex.AssertHeld();
  for (LaneMember* const member : members) (void)Map(member);
}

// An extent that one session keeps is in no other session's books.
void LaneMember::Lane::CheckOwners() const {
  mutex.AssertHeld();
  std::set<uint64_t> ids;
  size_t count = parts.size();
  for (const Piece& part : parts) ids.insert(part.extent.id);
  for (const LaneMember* const member : members) {
    member->guard_.AssertHeld();
    for (const std::pair<const uint64_t, LaneBooks::Kept>& kept : member->books_.kept()) {
      assert(!member->books_.IsMapped(kept.first));
      if (kept.second.extent.id == 0) continue;  // on the host
      ids.insert(kept.second.extent.id);
      ++count;
    }
  }
  assert(ids.size() == count);
  static_cast<void>(count);
}

// --- extents -------------------------------------------------------------------------------------

// An extent that a lost worker had only begun to add does not fit the sequence: no session uses
// such an extent, and it goes with the lane.
CUresult LaneMember::Lane::Refresh(bool enters) {
  mutex.AssertHeld();
  if (enters && claim->Take() && !own()) {
    stale = true;
    TellChanged();  // what the other workers know may be an earlier keeper's
    environment_.extents->Claim(id);
  }
  if (!stale) return CUDA_SUCCESS;
  std::vector<ExtentRecord> records;
  CUresult result = environment_.extents->List(owner(), &records);
  if (result != CUDA_SUCCESS) return result;
  std::map<uint64_t, Piece> before;
  for (const Piece& part : parts) before[part.extent.id] = part;
  parts.clear();
  for (const ExtentRecord& record : records) {
    if (result != CUDA_SUCCESS || record.address != bytes()) continue;
    const std::map<uint64_t, Piece>::const_iterator known = before.find(record.id);
    Piece part{record.address, {}};
    if (known != before.end() && known->second.address == record.address) {
      part = known->second;
      result = environment_.extents->Confirm(part.extent);
      if (result == CUDA_SUCCESS) before.erase(known);
    } else {
      result = environment_.extents->Import(record, &part.extent);
    }
    if (result == CUDA_SUCCESS) parts.push_back(part);
  }
  for (const std::pair<const uint64_t, Piece>& gone : before) {
    UnmapForAll(gone.second);
    environment_.extents->Drop(gone.second.extent);
  }
  for (LaneMember* const member : members)
    if (result == CUDA_SUCCESS) result = Map(member);
  stale = result != CUDA_SUCCESS;
  return result;
}

CUresult LaneMember::Lane::Create(uint64_t offset, uint64_t bytes, Piece* part) const {
  ExtentRecord wanted;
  wanted.owner = owner();
  wanted.bytes = bytes;
  wanted.address = offset;
  wanted.device = static_cast<uint32_t>(device);
  wanted.uid = uid;
  part->address = offset;
  return environment_.extents->Create(wanted, &part->extent);
}

// Parts never reach over the edge of what a member keeps: it could not map them in part.
CUresult LaneMember::Lane::Grow(uint64_t bytes) {
  mutex.AssertHeld();
  const size_t before = parts.size();
  CUresult result = CUDA_SUCCESS;
  while (result == CUDA_SUCCESS && this->bytes() < bytes) {
    const uint64_t offset = this->bytes();
    uint64_t end = bytes;
    for (const LaneMember* const member : members) {
      member->guard_.AssertHeld();
      end = member->books_.EndAtEdge(offset, end);
    }
    Piece part;
    result = Create(offset, std::min<uint64_t>(std::bit_floor(end - offset), kLaneExtentBytesMax),
                    &part);
    if (result == CUDA_SUCCESS) parts.push_back(part);
  }
  for (LaneMember* const member : members) {
    if (result == CUDA_SUCCESS) result = Map(member);
  }
  while (result != CUDA_SUCCESS && parts.size() > before) RemoveLast();
  if (parts.size() != before) TellChanged();
  return result;
}

void LaneMember::Lane::RemoveLast() {
  mutex.AssertHeld();
  UnmapForAll(parts.back());
  environment_.extents->Free(parts.back().extent);
  parts.pop_back();
}

// The member may keep extents of an earlier lane, which overlap extents of this lane in part. No
// part of an extent can be mapped, so this lane's extents are cut at the edges of the kept ones.
CUresult LaneMember::Lane::Fit(LaneMember* member) {
  mutex.AssertHeld();
  const uint64_t wanted = std::max(bytes(), member->reserved_bytes_);
  const std::vector<Piece>::iterator first =
      std::find_if(parts.begin(), parts.end(), [member](const Piece& part) {
        member->guard_.AssertHeld();
        const uint64_t kept = member->books_.KeptBytes(part.address, part.extent.bytes);
        return kept != 0 && kept != part.extent.bytes;
      });
  if (first != parts.end()) TellChanged();
  for (std::vector<Piece>::iterator part = first; part != parts.end(); ++part) {
    UnmapForAll(*part);
    environment_.extents->Free(part->extent);
  }
  parts.erase(first, parts.end());
  return bytes() < wanted ? Grow(wanted) : CUDA_SUCCESS;
}

// A lane of few mappings is mapped and unmapped faster. The large extent is made before the small
// ones go, so a keeper without room leaves the lane as it was.
bool LaneMember::Lane::Merge(size_t first, uint64_t* bytes) {
  mutex.AssertHeld();
  const uint64_t offset = parts[first].address;
  uint64_t sum = 0, merged = 0;
  size_t last = 0;
  for (size_t i = first; i < parts.size() && sum < kLaneExtentBytesMax; ++i) {
    sum += parts[i].extent.bytes;
    if (i == first || !std::has_single_bit(sum) || sum > std::min(*bytes, kLaneExtentBytesMax)) {
      continue;
    }
    merged = sum;
    last = i;
  }
  if (merged == 0) return false;
  for (const LaneMember* const member : members) {
    member->guard_.AssertHeld();
    if (member->books_.Keeps(offset, merged)) return false;
  }
  Piece large;
  if (Create(offset, merged, &large) != CUDA_SUCCESS) return false;
  for (size_t i = first; i <= last; ++i) {
    UnmapForAll(parts[i]);
    environment_.extents->Free(parts[i].extent);
  }
  parts[first] = large;
  parts.erase(parts.begin() + static_cast<ptrdiff_t>(first) + 1,
              parts.begin() + static_cast<ptrdiff_t>(last) + 1);
  *bytes = merged;
  return true;
}

// Fresh extents count as the member's at once, because the member gets the old ones in exchange.
CUresult LaneMember::Lane::CreateFresh(LaneMember* member, uint64_t offset, uint64_t end,
                                       std::vector<Piece>* fresh) {
  mutex.AssertHeld();
  member->guard_.AssertHeld();
  CUresult result = CUDA_SUCCESS;
  for (const Piece& part : parts) {
    const uint64_t bytes = part.extent.bytes;
    if (part.address >= end || part.address + bytes <= offset ||
        member->books_.Keeps(part.address, bytes)) {
      continue;
    }
    Piece made;
    result = member->job_->Take(device, bytes) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    if (result != CUDA_SUCCESS) break;
    result = Create(part.address, bytes, &made);
    if (result != CUDA_SUCCESS) {
      member->job_->Give(device, bytes);
      break;
    }
    fresh->push_back(made);
  }
  if (result == CUDA_SUCCESS) return result;
  for (const Piece& made : *fresh) {
    member->job_->Give(device, made.extent.bytes);
    environment_.extents->Free(made.extent);
  }
  fresh->clear();
  return result;
}

// The old extents stay mapped for the member and go from everyone else's mappings.
CUresult LaneMember::Lane::TakeOut(LaneMember* member, uint64_t offset, uint64_t end) {
  mutex.AssertHeld();
  member->guard_.AssertHeld();
  std::vector<Piece> fresh;
  const CUresult result = CreateFresh(member, offset, end, &fresh);
  if (result != CUDA_SUCCESS) return result;
  for (Piece& part : parts) {
    for (const Piece& made : fresh) {
      if (made.address != part.address) continue;
      (void)member->books_.NoteUnmapped(part.address);
      UnmapForAll(part);
      const CUdeviceptr at = member->base_ + part.address;
      environment_.extents->ChangeOwner(part.extent, {OwnerKind::kSession, member->session_id_}, at,
                                        at);
      member->books_.Keep(part.address, part.extent);
      part = made;
    }
  }
  MapForAll();
  TellChanged();
  return CUDA_SUCCESS;
}

void LaneMember::Lane::LetGo(bool free) {
  mutex.AssertHeld();
  for (const Piece& part : parts) {
    if (free) {
      environment_.extents->Free(part.extent);
    } else {
      environment_.extents->Drop(part.extent);
    }
  }
  parts.clear();
  stale = true;
}

}  // namespace worker
