// CUDA_LOG_FILE: where a driver writes the lines of its error log, too (NVIDIA's manual): stdout,
// stderr or a path. Laneway's libraries tell it why a call was refused. A program may well try a
// call and do without it, so whoever has not set the variable reads nothing.
//
// Thread safety: any thread. errno stays as it is.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace base {

inline void AppendToCudaLogFile(std::string line) {
  static const char* const path = std::getenv("CUDA_LOG_FILE");
  if (path == nullptr || *path == '\0') return;
  const int saved_errno = errno;
  line += '\n';
  const std::string_view name = path;
  const bool stream = name == "stdout" || name == "stderr";
  FILE* const file = !stream ? std::fopen(path, "a") : name == "stdout" ? stdout : stderr;
  if (file != nullptr) std::fputs(line.c_str(), file);
  if (file != nullptr && !stream) std::fclose(file);
  errno = saved_errno;
}

}  // namespace base
