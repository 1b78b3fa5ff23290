// Ranges of device memory that several sessions of one user have mapped (cuIpcGetMemHandle).
//
// A range is shared by a name that cannot be guessed, and only within one worker: the driver maps
// the same extents once more, at addresses of the session that opens the name. The memory goes with
// the last session that has it. The range counts as memory of the session that made the range. Once
// that session has freed the range or ended, the keeper counts the range as the next session's.
// Thread safety: all methods.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "daemon/worker/backing.h"
#include "ipc/calls/laneway_calls.h"
#include "ipc/calls/limits.h"

namespace worker {

class SharedRange {
 public:
  SharedRange(int device, std::vector<Piece> pieces)
      : device_(device), pieces_(std::move(pieces)) {}
  int device() const { return device_; }
  // At the addresses of the session that shares them.
  const std::vector<Piece>& pieces() const { return pieces_; }
  CUdeviceptr base() const { return pieces_.front().address; }
  // The same extents where another session maps the range.
  std::vector<Piece> PiecesAt(CUdeviceptr address) const;

 private:
  friend class SharedRanges;
  struct Holder {
    uint64_t session_id;
    CUdeviceptr address;
    size_t guest_extents = 0;  // that it has mapped of another session
  };
  const int device_;
  const std::vector<Piece> pieces_;
  uint32_t uid_ = 0;
  ipc::ShareName name_;
  std::vector<Holder> holders_;  // the first is the extents' owner; guarded by SharedRanges
};

class SharedRanges {
 public:
  static SharedRanges& Process();
  // A worker's number is random, so that a name of another worker is told from a wrong one.
  explicit SharedRanges(size_t guest_extents_max = ipc::limits::kGuestExtentsShared);
  SharedRanges(const SharedRanges&) = delete;

  struct Member {
    uint64_t session_id;
    uint32_t uid;
  };
  // Shares a range that the member has; later calls say `range` itself. Null: the system has no
  // random numbers.
  std::shared_ptr<SharedRange> Share(const Member& member, int device,
                                     const std::vector<Piece>& pieces);
  ipc::ShareName NameOf(const SharedRange& range) const { return range.name_; }
  // The member becomes a holder, and is to map the range at `address`. 400: there is no such name,
  // or it is another user's. 801: the name is of another worker, or of another device. 201: the
  // member has the range already. 2: the sessions of the worker have mapped too much.
  CUresult Join(const Member& member, const ipc::ShareName& name, int device, CUdeviceptr address,
                std::shared_ptr<SharedRange>* range);
  // Unmaps what the member has mapped of the range. The extents go with the last holder.
  void Leave(const Environment& environment, const std::shared_ptr<SharedRange>& range,
             uint64_t session_id, const std::vector<Piece>& mapped);

 private:
  using Token = std::pair<uint64_t, uint64_t>;
  static bool Draw(ipc::ShareName* name);

  const size_t guest_extents_max_;
  uint64_t worker_ = 0;
  base::Mutex mutex_;
  size_t guest_extents_ GUARDED_BY(mutex_) = 0;
  std::map<Token, std::shared_ptr<SharedRange>> ranges_ GUARDED_BY(mutex_);
};

}  // namespace worker
