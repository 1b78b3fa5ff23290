// The driver behind this facade: the vendor's libcuda.so.1 or the software GPU's, by the path that
// `laneway run` has put into LANEWAY_DRIVER. Thread safety: the table is constant once loaded.
#pragma once

#include "ipc/driver_table.h"

namespace shim::inprocess {

// Loads it when first asked. What it lacks is null; everything is when it cannot be loaded, which
// is said on stderr.
const ipc::DriverTable& Next();

// A name that our table does not have, as its users ask for it.
void* NextSymbol(const char* name);

}  // namespace shim::inprocess
