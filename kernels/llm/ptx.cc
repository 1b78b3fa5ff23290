// The PTX that nvcc has made of the .cu files, as the build embeds it.
#include "kernels/llm/launch.h"

// The bytes of a file, and a zero byte behind them.
#define KERNELS_EMBED(symbol, path)                                           \
  asm(".pushsection .rodata\n.global " symbol "\n.hidden " symbol "\n" symbol \
      ":\n"                                                                   \
      ".incbin \"" path "\"\n.byte 0\n.popsection")

KERNELS_EMBED("laneway_llm_rows_ptx", LLM_ROWS_PTX);
KERNELS_EMBED("laneway_llm_attention_ptx", LLM_ATTENTION_PTX);
KERNELS_EMBED("laneway_llm_sampling_ptx", LLM_SAMPLING_PTX);

extern "C" const char laneway_llm_rows_ptx[];
extern "C" const char laneway_llm_attention_ptx[];
extern "C" const char laneway_llm_sampling_ptx[];

namespace kernels::llm {

Ptx PtxOfKernels() {
  return {laneway_llm_rows_ptx, laneway_llm_attention_ptx, laneway_llm_sampling_ptx};
}

}  // namespace kernels::llm
