// The options of module loading and linking: where the logs go, and the few limits that mean
// something here.
#pragma once

#include <cuda.h>

#include <string_view>

namespace softgpu {

// Options are named by a parallel array of values, each a pointer or a number in a pointer's
// clothes.
class JitOptions {
 public:
  // The arrays must outlive the object: log sizes are written back into `values`.
  JitOptions(unsigned count, CUjit_option* options, void** values)
      : count_(options != nullptr && values != nullptr ? count : 0),
        options_(options),
        values_(values) {}

  // False when the program does not read what is wrong with an image.
  bool HasErrorLog() const { return Find(CU_JIT_ERROR_LOG_BUFFER) != nullptr; }
  void WriteErrorLog(std::string_view text) const {
    WriteLog(CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, text);
  }
  void WriteInfoLog(std::string_view text) const {
    WriteLog(CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, text);
  }
  void WriteWallTime(float milliseconds) const;

 private:
  void** Find(CUjit_option option) const;
  void WriteLog(CUjit_option buffer, CUjit_option size, std::string_view text) const;

  const unsigned count_;
  CUjit_option* const options_;
  void** const values_;
};

}  // namespace softgpu
