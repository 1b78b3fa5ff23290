// One extent in two processes. A binary of its own: it forks before the driver is initialised.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "tests/softgpu/virtual_memory.h"

namespace softgpu::testing {
namespace {

// The child maps the extent at the same address and writes.
void ChildWrites(int descriptor) {
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr range = 0;
  const bool done =
      cuInit(0) == CUDA_SUCCESS &&
      cuMemImportFromShareableHandle(&handle,
                                     reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)),
                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == CUDA_SUCCESS &&
      cuMemAddressReserve(&range, kBytes, 0, kHint, 0) == CUDA_SUCCESS && range == kHint &&
      cuMemMap(range, kBytes, 0, handle, 0) == CUDA_SUCCESS && Open(range, kBytes) == CUDA_SUCCESS;
  if (done) *reinterpret_cast<int*>(range + 12) = 123;
  _exit(done ? 0 : 1);
}

int ReceiveDescriptor(int socket) {
  char byte, control[CMSG_SPACE(sizeof(int))];
  iovec data = {&byte, 1};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (recvmsg(socket, &message, 0) != 1) return -1;
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof descriptor);
  return descriptor;
}

void SendDescriptor(int socket, int descriptor) {
  char byte = 0, control[CMSG_SPACE(sizeof(int))] = {};
  iovec data = {&byte, 1};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  ASSERT_EQ(sendmsg(socket, &message, 0), 1);
}

TEST(SharedMemoryTest, AnotherProcessMapsTheSameBytes) {
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) ChildWrites(ReceiveDescriptor(sockets[1]));
  ASSERT_OK(cuInit(0));
  const CUmemGenericAllocationHandle handle = Create(kBytes);
  int descriptor = -1;
  ASSERT_OK(cuMemExportToShareableHandle(&descriptor, handle,
                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  SendDescriptor(sockets[0], descriptor);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  CUdeviceptr range = 0;
  ASSERT_OK(cuMemAddressReserve(&range, kBytes, 0, kHint, 0));
  ASSERT_OK(cuMemMap(range, kBytes, 0, handle, 0));
  ASSERT_OK(Open(range, kBytes));
  EXPECT_EQ(*reinterpret_cast<int*>(range + 12), 123);
}

}  // namespace
}  // namespace softgpu::testing
