#include "runtime/program_image.h"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "runtime/driver.h"

namespace runtime {
namespace {

constexpr size_t kLogBytes = 4096;

// A container's header: u32 magic, u16 version, u16 header bytes, u64 bytes of its entries.
struct ContainerHeader {
  uint32_t magic;
  uint16_t version, header_bytes;
  uint64_t entries_bytes;
};

ContainerHeader HeaderOf(const void* container) {
  ContainerHeader header;
  std::memcpy(&header, container, sizeof header);
  return header;
}

size_t BytesOf(const void* container) {
  const ContainerHeader header = HeaderOf(container);
  return header.header_bytes + header.entries_bytes;
}

// Where the driver writes what is wrong with an image, for as long as the call or link lasts.
class ErrorLog {
 public:
  unsigned count() const { return 2; }
  CUjit_option* options() { return options_; }
  void** values() { return values_; }
  const char* text() const { return text_; }

 private:
  char text_[kLogBytes] = "";
  CUjit_option options_[2] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values_[2] = {text_, reinterpret_cast<void*>(kLogBytes)};
};

cudaError_t AddAll(CUlinkState link, const void* const* containers) {
  cudaError_t error = cudaSuccess;
  for (unsigned i = 0; containers[i] != nullptr && error == cudaSuccess; ++i) {
    const std::string name = "object " + std::to_string(i + 1) + " of the program";
    error =
        Driver().cuLinkAddData_v2(link, CU_JIT_INPUT_FATBINARY, const_cast<void*>(containers[i]),
                                  BytesOf(containers[i]), name.c_str(), 0, nullptr, nullptr);
  }
  return error;
}

// The error codes of a link do not say which symbol is missing: the log does.
cudaError_t LinkAndLoad(const void* const* containers, CUmodule* module) {
  ErrorLog log;
  CUlinkState link = nullptr;
  void* image = nullptr;
  size_t bytes = 0;
  cudaError_t error = Driver().cuLinkCreate_v2(log.count(), log.options(), log.values(), &link);
  if (error != cudaSuccess) return error;
  error = AddAll(link, containers);
  if (error == cudaSuccess) error = Driver().cuLinkComplete(link, &image, &bytes);
  if (error == cudaSuccess) error = Driver().cuModuleLoadData(module, image);
  if (error != cudaSuccess && log.text()[0] != '\0')
    std::fprintf(stderr, "cudart: the program's device code can't be linked: %s\n", log.text());
  Driver().cuLinkDestroy(link);
  return error;
}

}  // namespace

cudaError_t LoadProgramImage(const __fatBinC_Wrapper_t& wrapper, CUmodule* module) {
  const void* const* const containers =
      wrapper.version == FATBINC_LINK_VERSION
          ? static_cast<const void* const*>(wrapper.filename_or_fatbins)
          : nullptr;
  if (containers == nullptr || containers[0] == nullptr)
    return Driver().cuModuleLoadData(module, wrapper.data);
  if (HeaderOf(wrapper.data).entries_bytes > 0) {
    ErrorLog log;  // a refusal is no news while there is something to link
    const cudaError_t error =
        Driver().cuModuleLoadDataEx(module, wrapper.data, log.count(), log.options(), log.values());
    if (error != cudaErrorNoKernelImageForDevice) return error;
  }
  return LinkAndLoad(containers, module);
}

}  // namespace runtime
