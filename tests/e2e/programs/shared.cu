// Two programs of one user share memory: a parent, which has the memory, and its child, which opens
// it. Each goes a step when the other has. The first argument says what the two do.
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

__global__ void Add(int* data, int count, int more) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] += more;
}

static const int kSmall = 1000, kLarge = 3 << 20;

struct Note {
  CUipcMemHandle small, large;
};

static int to_other[2], from_other[2];  // of the parent; the child has them the other way round

static void Send(int fd, const void* bytes, size_t size) {
  if (write(fd, bytes, size) != (ssize_t)size) exit(3);
}
static void Receive(int fd, void* bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t got = read(fd, (char*)bytes + done, size - done);
    if (got <= 0) exit(4);
    done += (size_t)got;
  }
}
static void Tell(int fd) { Send(fd, "x", 1); }
static void Await(int fd) {
  char byte;
  Receive(fd, &byte, 1);
}

static int* Filled(int count, int value) {
  int* device = NULL;
  int* const host = (int*)malloc(count * sizeof(int));
  for (int i = 0; i < count; ++i) host[i] = value + i;
  CUDA_CHECK(cudaMalloc((void**)&device, count * sizeof(int)));
  CUDA_CHECK(cudaMemcpy(device, host, count * sizeof(int), cudaMemcpyHostToDevice));
  free(host);
  return device;
}

static int Right(const int* device, int count, int value) {
  int* const host = (int*)malloc(count * sizeof(int));
  CUDA_CHECK(cudaMemcpy(host, device, count * sizeof(int), cudaMemcpyDeviceToHost));
  int right = 0;
  for (int i = 0; i < count; ++i) right += host[i] == value + i;
  free(host);
  return right;
}

static void Change(int* device, int count, int more) {
  Add<<<(count + 255) / 256, 256>>>(device, count, more);
  CUDA_CHECK(cudaDeviceSynchronize());
}

static int* Open(const CUipcMemHandle& handle) {
  CUdeviceptr address = 0;
  CHECK(cuIpcOpenMemHandle(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  return (int*)address;
}

static int Refused(CUipcMemHandle handle, size_t byte, unsigned flags) {
  CUdeviceptr address = 0;
  ((unsigned char*)&handle)[byte] ^= 1;
  return cuIpcOpenMemHandle(&address, handle, flags);
}

// --- the child -----------------------------------------------------------------------------------

static void Child(const char* what) {
  CUDA_CHECK(cudaFree(NULL));
  Note note;
  Receive(to_other[0], &note, sizeof note);
  int* const small = Open(note.small);
  int* const large = Open(note.large);
  printf("child: %d %d\n", Right(small, kSmall, 5), Right(large, kLarge, 7));
  if (strcmp(what, "handles") == 0) {
    printf("child: again %d\n", Open(note.small) == small);
    printf("child: changed");
    for (size_t byte = 0; byte < 64; byte += 8) {
      if (byte != 40 && byte != 48 && byte != 56) printf(" %d", Refused(note.small, byte, 1));
    }
    CUipcMemHandle beyond = note.small;
    memset((char*)&beyond + 48, 0x7f, 8);
    printf(" %d, flags %d\n", Refused(beyond, 56, 1), Refused(note.small, 56, 0));
    printf("child: free %d, ", cuMemFree((CUdeviceptr)small));
    printf("close inside %d\n", cuIpcCloseMemHandle((CUdeviceptr)small + 4));
    CHECK(cuIpcCloseMemHandle((CUdeviceptr)small));
    printf("child: still %d\n", Right(small, kSmall, 5));
    CUipcMemHandle mine;
    printf("child: hand on %d\n", cuIpcGetMemHandle(&mine, (CUdeviceptr)small));
  } else if (strcmp(what, "holds") == 0) {
    fflush(stdout);
    Tell(from_other[1]);
    for (;;) pause();
  } else if (strcmp(what, "free") == 0 || strcmp(what, "dies") == 0) {
    fflush(stdout);
    Tell(from_other[1]);
    // The parent has freed the memory, or has ended.
    if (strcmp(what, "free") == 0) {
      Await(to_other[0]);
    } else {
      char byte;
      if (read(to_other[0], &byte, 1) != 0) exit(5);
    }
    Change(large, kLarge, 4);
    printf("child: kept %d\n", Right(large, kLarge, 11));
  } else {
    Change(small, kSmall, 100);
    Change(large, kLarge, 1000);
  }
  CHECK(cuIpcCloseMemHandle((CUdeviceptr)small));
  CHECK(cuIpcCloseMemHandle((CUdeviceptr)large));
  printf("child: close again %d\n", cuIpcCloseMemHandle((CUdeviceptr)large));
  int value = 0;
  printf("child: closed %d\n", cuMemcpyDtoH(&value, (CUdeviceptr)large, sizeof value));
  fflush(stdout);
  if (strcmp(what, "dies") != 0) Tell(from_other[1]);
}

// --- the parent ----------------------------------------------------------------------------------

static void Parent(const char* what, pid_t child) {
  int* const small = Filled(kSmall, 5);
  int* const large = Filled(kLarge, 7);
  Note note;
  CHECK(cuIpcGetMemHandle(&note.small, (CUdeviceptr)small));
  CHECK(cuIpcGetMemHandle(&note.large, (CUdeviceptr)large + 4096));
  if (strcmp(what, "handles") == 0) {
    CUdeviceptr own = 0;
    CUipcMemHandle handle;
    void *host = NULL, *managed = NULL;
    CUDA_CHECK(cudaMallocHost(&host, 4096));
    CUDA_CHECK(cudaMallocManaged(&managed, 4096));
    printf("own %d, host %d, managed %d, nothing %d\n",
           cuIpcOpenMemHandle(&own, note.small, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
           cuIpcGetMemHandle(&handle, (CUdeviceptr)host),
           cuIpcGetMemHandle(&handle, (CUdeviceptr)managed), cuIpcGetMemHandle(&handle, 4096));
    fflush(stdout);
  }
  Send(to_other[1], &note, sizeof note);
  Await(from_other[0]);
  if (strcmp(what, "holds") == 0) {
    printf("holds\n");
    fflush(stdout);
    getchar();
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    Change(large, kLarge, 1);
    printf("parent: %d\n", Right(large, kLarge, 8));
  } else if (strcmp(what, "dies") == 0) {
    printf("ends\n");
    fflush(stdout);
    return;
  } else if (strcmp(what, "free") == 0) {
    CUDA_CHECK(cudaFree(large));
    CUDA_CHECK(cudaFree(small));
    int* const next = Filled(2 * kLarge, 1);
    Change(next, 2 * kLarge, 1);
    Tell(to_other[1]);
    Await(from_other[0]);
    printf("parent: %d\n", Right(next, 2 * kLarge, 2));
    return;
  } else if (strcmp(what, "exchange") == 0) {
    printf("parent: %d %d\n", Right(small, kSmall, 105), Right(large, kLarge, 1007));
  }
  CUDA_CHECK(cudaFree(small));
  CUDA_CHECK(cudaFree(large));
}

int main(int, char** argv) {
  if (pipe(to_other) != 0 || pipe(from_other) != 0) return 2;
  const pid_t child = fork();
  if (child == 0) {
    close(to_other[1]);
    Child(argv[1]);
    return 0;
  }
  close(to_other[0]);
  close(from_other[1]);
  Parent(argv[1], child);
  if (strcmp(argv[1], "dies") == 0) return 0;
  int status = 0;
  if (strcmp(argv[1], "holds") != 0) waitpid(child, &status, 0);
  return status == 0 ? 0 : 6;
}
