/* Loads an image that holds machine code alone, twice: what libraries without PTX do. */
#include <cuda.h>
#include <elf.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  struct {
    Elf64_Ehdr header;
    Elf64_Shdr section;
  } image;
  CUdevice device;
  CUcontext context;
  CUmodule module;
  memset(&image, 0, sizeof image);
  memcpy(image.header.e_ident, "\177ELF\2\1\1", 7);
  image.header.e_shoff = sizeof image.header;
  image.header.e_shentsize = sizeof image.section;
  image.header.e_shnum = 1;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
      cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    return 1;
  }
  printf("first %d\n", cuModuleLoadData(&module, &image));
  printf("second %d\n", cuModuleLoadData(&module, &image));
  return 0;
}
