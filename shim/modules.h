// Modules and their functions: images travel once by content, layouts and attributes are fetched
// once. Thread safety: all functions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "shim/state.h"

namespace shim {

// The options of a load, taken apart: values that cross, and the program's log buffers.
struct JitOptions {
  std::vector<CUjit_option> options;
  std::vector<uint64_t> values;
  char* info_log = nullptr;
  unsigned info_log_bytes = 0;
  char* error_log = nullptr;
  unsigned error_log_bytes = 0;
  // The program's option_values of the two log sizes, which receive the bytes filled; null: not
  // asked for.
  void** info_log_filled = nullptr;
  void** error_log_filled = nullptr;

  // Tells the program how much the worker wrote into its logs.
  void TellFilled() const;
};

class Modules {
 public:
  // CUDA_ERROR_NOT_SUPPORTED for options that hold pointers we can't follow.
  static CUresult ReadOptions(unsigned count, const CUjit_option* options, void** values,
                              JitOptions* read);

  // What the worker has by content is not sent again.
  static CUresult Send(uint32_t wire, const ipc::ModuleHash& hash,
                       std::span<const std::byte> image);

  // Loads `image` into a context. Errors are the driver's, reported now.
  static CUresult Load(const Context& context, uint64_t context_value, const void* image,
                       JitOptions* options, uint64_t* module);
  static CUresult Unload(uint64_t module);

  // The same function for the same name every time. 500 when there is none.
  static CUresult FindFunction(uint64_t module, const char* name, uint64_t* function);
  static CUresult FindVariable(uint64_t module, const char* name, CUdeviceptr* address,
                               size_t* bytes);
  static CUresult FunctionNames(uint64_t module, std::vector<std::string>* names);

 private:
  static CUresult LoadOnce(const Context& context, uint64_t context_value, const void* image,
                           JitOptions* options, uint64_t* module);
};

}  // namespace shim
