// libcuda.so.1's exports: every row of the driver's table under its own name.
#include <array>
#include <string_view>

#include "shim/driver/entry_address.h"
#include "shim/driver/local.h"

#define LANEWAY_FORWARD shim::ForwardDriver
#include "shim/export_rows.h"

#include "ipc/calls/driver.inc"
#undef CALL

namespace shim {

void* EntryAddress(std::string_view symbol) {
  // Filled at load by the dynamic linker.
  static void* const kEntries[] = {
#define CALL(fn, ...) reinterpret_cast<void*>(&::fn),
#include "ipc/calls/driver.inc"
#undef CALL
  };
  const std::optional<ipc::Op> op = ipc::OpNamed(symbol);
  if (!op.has_value() || ipc::LibraryOf(*op) != ipc::Library::kDriver) return nullptr;
  return kEntries[ipc::IndexOf(*op)];
}

}  // namespace shim
