// Programs that ask NVRTC for machine code (--gpu-architecture=sm_80, nvrtcGetCUBIN) get the PTX
// for the same architecture, in the container that the driver's linker answers with and module
// loading accepts. All else is the vendor's answer.
//
// Thread safety: any thread; one program at a time each, as NVRTC wants it.
#pragma once

#include <nvrtc.h>

#include <optional>
#include <string>
#include <vector>

namespace softgpu::nvrtc {

struct Options {
  std::vector<std::string> words;   // with the virtual architecture in place of the real one
  std::optional<int> architecture;  // 80: sm_80 was asked for; none: no machine code was
};

// Takes all of NVRTC's spellings: --gpu-architecture=A, --gpu-architecture A, -arch=A, -arch A.
// Link-time optimisation makes no machine code: nothing changes.
Options WithoutMachineCode(std::vector<std::string> words);

namespace ours {

nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char* const* options);
nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program);
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t* bytes);
nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* cubin);

}  // namespace ours
}  // namespace softgpu::nvrtc
