// What a recorded function stands on, copied from the live session: module images, the calls that
// made functions and library handles, and the contents of device memory.
//
// Thread safety: any thread. REQUIRES: no lock of the shim is held; the program has waited for the
// device.
#pragma once

#include <string>

#include "functions/recording.h"

namespace shim::recording {

// False: `why` is a sentence.
bool TakeSnapshot(functions::Recording* recording, std::string* why);

}  // namespace shim::recording
