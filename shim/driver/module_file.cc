#include "shim/driver/module_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ipc/calls/limits.h"

namespace shim {

CUresult ReadModuleFile(const char* path, std::string* bytes) {
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return CUDA_ERROR_FILE_NOT_FOUND;
  struct stat info;
  CUresult result = CUDA_ERROR_INVALID_IMAGE;
  if (fstat(fd, &info) == 0 &&
      static_cast<uint64_t>(info.st_size) <= ipc::limits::kModuleBytesMax) {
    bytes->resize(static_cast<size_t>(info.st_size));
    size_t done = 0;
    ssize_t n = 1;
    while (done < bytes->size() && n > 0) {
      n = read(fd, bytes->data() + done, bytes->size() - done);
      if (n > 0) done += static_cast<size_t>(n);
    }
    if (done == bytes->size() && done != 0) result = CUDA_SUCCESS;
  }
  close(fd);
  return result;
}

}  // namespace shim
