// Files in the state directory: a person may edit them, a disk may tear them. What was read is
// written again and must then be read as the same.
#include <cassert>
#include <cstdint>
#include <string_view>

#include "daemon/control/command_profiles.h"
#include "ipc/history.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  control::CommandProfiles learned;
  learned.MergeUntrusted(text);
  control::CommandProfiles again;
  const size_t skipped = again.MergeUntrusted(learned.Encode());
  assert(skipped == 0 && again.size() == learned.size());
  for (const ipc::HistoryRecord& record : ipc::ReadHistoryUntrusted(text).records) {
    const ipc::HistoryRead read = ipc::ReadHistoryUntrusted(ipc::HistoryLine(record));
    assert(read.records.size() == 1 && read.skipped == 0);
  }
  return 0;
}
