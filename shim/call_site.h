// Where in the program a call comes from: a hash of the calling frames, the same in every
// iteration.
#pragma once

#include <cstdint>

namespace shim {

inline constexpr int kSiteFrames = 16;

// Never 0. Safe on any thread and any stack: it takes no lock of ours, allocates nothing, and where
// a frame has no unwind information (code made at run time) it stops or continues, but reads only
// memory that it has checked. About 0.5 us once the frames' unwind information is known; REQUIRES:
// no lock of ours is held, as the first walk over a frame takes the dynamic linker's.
uint64_t CallSite();

}  // namespace shim
