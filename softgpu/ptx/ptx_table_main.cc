// ptx_table: prints docs/ptx.md from the instruction table.
#include <cstdio>

#include "softgpu/ptx/instruction_text.h"

int main() {
  std::fputs(softgpu::ptx::PtxMarkdown().c_str(), stdout);
  return 0;
}
