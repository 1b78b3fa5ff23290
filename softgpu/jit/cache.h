// Compiled kernels on disk, found by what they were compiled from.
//
// $XDG_CACHE_HOME/laneway/softgpu (or ~/.cache/...), its owner's alone. The name of a file is a
// cryptographic hash (BLAKE2b-256) of the program, the compiler and the processor, so that no
// program can be written to get the name, and thereby the code, of another one. The content is
// checked before it runs: owner, mode, and a checksum (XXH3) that finds damage but stops no
// attacker. Files appear by renaming, so that readers see whole ones; the oldest go when they are
// too many. Nothing here ever fails a launch: without a cache, kernels are compiled anew. Thread
// safety: functions without state, safe from any thread and process.
#pragma once

#include <string>

#include "softgpu/jit/program.h"

namespace softgpu::jit {

// The name under which `program`, compiled by the plugin at `compiler`, is kept: 64 hex digits.
std::string CacheName(const Program& program, const std::string& compiler);

// Empty when there is no directory to keep it in.
std::string CacheDirectory();

bool LoadCached(const std::string& directory, const std::string& name, Compiled* out);
void StoreCached(const std::string& directory, const std::string& name, const Compiled& compiled);

}  // namespace softgpu::jit
