// The libraries that stand in for a program's own, and where they lie: beside this library. Two
// libraries are compiled with it, and each is preloaded in one mode: liblaneway_client.so, and
// inprocess/liblaneway_preload.so, whose one facade is the driver's.
//
// Thread safety: any thread.
#pragma once

#include <span>
#include <string>

namespace facades {

struct Facade {
  const char* soname;
  const char* file;      // from the directory of this library
  const char* unsoname;  // the same library by the name that a linker looks for; null: not replaced
};

std::span<const Facade> All();

// This library's own path, as the loader opened it. Made once, as all paths here: the loader keeps
// no copy of what it is given while it works.
const std::string& OwnPath();

// The full path of All()[i].
const std::string& PathOf(size_t i);

}  // namespace facades
