// What the kernels of a file read, write and update, as plain data for people and programs.
//
// Thread safety: pure but for reading the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace replay {

// What a kernel does through one parameter or variable.
struct TouchReport {
  std::string name;  // "parameter 2", "parameter 0 + 8" of a structure, or a variable's
  bool is_variable = false;
  uint32_t offset = 0;            // of a parameter, in bytes
  std::vector<std::string> uses;  // "reads", "writes", "updates"
  bool escapes = false;           // the kernel stores the address
  // "4 bytes at p0 + tid.x * 4 where tid.x < p8", p0 being the parameter at byte 0. Empty: anywhere
  // in the allocation.
  std::vector<std::string> ranges;
};

struct KernelReport {
  std::string name;    // as the module has it
  std::string reason;  // why the rest is not known; empty when it is
  std::vector<TouchReport> touches;
};

struct FileReport {
  std::vector<KernelReport> kernels;
  size_t machine_code = 0;           // images without PTX
  std::vector<std::string> refused;  // PTX that does not parse: why
};

// The file is PTX text, a fat binary, or a program or library that carries fat binaries. An error
// when it can't be read or holds no image.
absl::StatusOr<FileReport> ReportKernelsUntrusted(const std::string& path);

// The same of the image of a module, added to what is in the report.
void AddImageReportUntrusted(std::span<const std::byte> image, FileReport* report);

// "reduce(float*)" of "_Z6reducePf".
std::string ReadableKernelName(const std::string& name);

}  // namespace replay
