// Writes a program's op stream to a file, for the detector's tests: LANEWAY_RECORD_OPS=FILE. A
// diagnostic: the file holds hashes and sizes, no data of the program. stream.h tells the format.
// Thread safety: none.
#pragma once

#include <cstdio>
#include <memory>

#include "shim/iterations/history.h"

namespace shim::iterations {

class Recorder {
 public:
  // Null when file is null, empty or can't be written (said once on stderr).
  static std::unique_ptr<Recorder> Open(const char* file);
  // marked: the program itself said that an iteration begins with this operation.
  void Add(const Op& op, bool marked);

 private:
  explicit Recorder(std::FILE* file) : file_(file) {}
  std::FILE* const file_;  // never closed: the process's end writes what is left
};

}  // namespace shim::iterations
