// Tables of virtual time: any text is parsed or refused, and every rule gives a cost that the model
// of a device takes.
#include <cassert>
#include <cstdint>
#include <string>
#include <string_view>

#include "softgpu/driver/timing_table.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string error;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::optional<softgpu::TimingTable> table =
      softgpu::TimingTable::ParseUntrusted(text, &error);
  if (!table) return 0;
  for (const softgpu::Dim3& grid : {softgpu::Dim3{1, 1, 1}, {0x7fffffff, 65535, 65535}}) {
    const std::optional<softgpu::TimedKernel> found = table->TimeOf("k", grid, 32);
    if (!found) continue;
    assert(found->cost.share > 0 && found->cost.share <= 1);
    assert(found->cost.time_ns >= 0 && found->cost.launch_ns >= 0);
  }
  assert(table->OnDevice(size).cost.time_ns >= 0 && table->BesideDevice(size, true).cost.share > 0);
  return 0;
}
