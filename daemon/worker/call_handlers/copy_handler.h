// Serves the copies between the client and the device, and within the device (ipc::CopyCalls).
// Thread safety: one session's thread.
#pragma once

#include "ipc/calls/vendor.h"

#include "daemon/worker/call_context.h"
#include "daemon/worker/client_bell.h"
#include "daemon/worker/holdings.h"
#include "daemon/worker/session_memory.h"
#include "ipc/door.h"
#include "ipc/session_file.h"

namespace worker {

class CopyHandler final : public ipc::CopyCalls {
 public:
  // The client that waits for copies, and where their bytes are on the host.
  struct Client {
    ipc::SessionFile* file;
    ClientBell* bell;
    ipc::Session* door;  // accepts the addresses that depend on several parameters
  };
  // All outlive this object.
  CopyHandler(Holdings* held, CallContext* call, const DeviceTurn* turn, const Client& client);
  CopyHandler(const CopyHandler&) = delete;

  CUresult CopyInline(CUdeviceptr to, const void* bytes, size_t count, CUstream stream) override;
  CUresult CopyStagedIn(CUdeviceptr to, uint64_t staging_offset, size_t count, CUstream stream,
                        ipc::Mark mark) override;
  CUresult CopyStagedOut(uint64_t staging_offset, CUdeviceptr from, size_t count, CUstream stream,
                         ipc::Mark mark) override;
  CUresult CopyDevice(CUdeviceptr to, CUdeviceptr from, size_t count, CUstream stream,
                      ipc::Mark mark) override;
  CUresult CopyPitched(CUdeviceptr to, size_t to_pitch, CUdeviceptr from, size_t from_pitch,
                       size_t width, size_t height, CUstream stream, ipc::Mark mark) override;
  CUresult CopyPitchedStagedIn(CUdeviceptr to, size_t to_pitch, uint64_t staging_offset,
                               size_t width, size_t height, CUstream stream,
                               ipc::Mark mark) override;
  CUresult CopyPitchedStagedOut(uint64_t staging_offset, CUdeviceptr from, size_t from_pitch,
                                size_t width, size_t height, CUstream stream,
                                ipc::Mark mark) override;
  CUresult FetchAhead(uint64_t staging_offset, CUdeviceptr from, size_t count, CUstream stream,
                      ipc::Mark mark, uint64_t ticket) override;

 private:
  // True when the driver may do the copy before it returns, so that no notice of its end is needed.
  bool CanCopyAtOnce(size_t count, CUstream stream);
  CUresult CopyOut(uint64_t staging_offset, CUdeviceptr from, size_t count, CUstream stream,
                   bool at_once);
  // Marks the end of a copy and returns the first failure. `at_once`: the copy had ended when the
  // driver returned.
  CUresult MarkCopy(CUresult copied, const ipc::Mark& mark, bool at_once = false);

  const ipc::DriverTable& driver_;
  Holdings& held_;
  const CallContext& call_;
  const DeviceTurn& turn_;
  const Client client_;
};

}  // namespace worker
