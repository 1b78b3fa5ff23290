// Probes of a real driver: facts on which the design stands and which only hardware can show.
//
//   gpu_probe NAME     prints one line, {"ok": true|false, "facts": {...}}; exits 0 when the fact
//   holds, 1 when not gpu_probe --list
//
// Each probe says what it would overturn. They use the driver interface alone, dlopen nothing and
// fork their own helpers, so that a poisoned context ends with its process.
#include <cuda.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr CUdeviceptr kArenaBase = 0x2000'0000'0000ull;

struct Fact {
  std::string name, value;
};

void Check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  std::printf("{\"ok\": false, \"facts\": {\"failed\": \"%s\", \"code\": %d}}\n", call, result);
  std::fflush(stdout);
  _exit(1);
}
#define CHECK(call) Check((call), #call)

int Report(bool ok, std::initializer_list<Fact> facts) {
  std::printf("{\"ok\": %s, \"facts\": {", ok ? "true" : "false");
  const char* separator = "";
  for (const Fact& fact : facts) {
    std::printf("%s\"%s\": \"%s\"", separator, fact.name.c_str(), fact.value.c_str());
    separator = ", ";
  }
  std::printf("}}\n");
  std::fflush(stdout);
  return ok ? 0 : 1;
}

std::string Hex(unsigned long long value) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%llx", value);
  return text;
}

double NowUs() {
  const std::chrono::duration<double, std::micro> now =
      std::chrono::steady_clock::now().time_since_epoch();
  return now.count();
}

CUcontext MakeContext() {
  CUdevice device;
  CUcontext context;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  return context;
}

CUmemAllocationProp Shareable() {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

void Map(CUdeviceptr address, size_t bytes, CUmemGenericAllocationHandle handle) {
  CUmemAccessDesc access = {};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CHECK(cuMemMap(address, bytes, 0, handle, 0));
  CHECK(cuMemSetAccess(address, bytes, &access, 1));
}

int ChildResult(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// --- addresses ---------------------------------------------------------------------------------

// Overturns: arenas at fixed addresses, and with them rebuilding a session in another worker.
int SameAddress() {
  for (int round = 0; round < 2; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      MakeContext();
      CUdeviceptr address = 0;
      const CUresult result = cuMemAddressReserve(&address, 192ull << 30, 0, kArenaBase, 0);
      _exit(result == CUDA_SUCCESS && address == kArenaBase ? 0 : 1);
    }
    if (ChildResult(child) != 0) return Report(false, {{"wanted", Hex(kArenaBase)}});
  }
  return Report(true, {{"address", Hex(kArenaBase)}, {"bytes", Hex(192ull << 30)}});
}

// Overturns: lanes, where one extent serves several sessions' ranges.
int ExtentAtTwoAddresses() {
  MakeContext();
  CUmemGenericAllocationHandle extent;
  const CUmemAllocationProp properties = Shareable();
  CUdeviceptr base = 0;
  unsigned value = 0;
  CHECK(cuMemCreate(&extent, 2 * kMiB, &properties, 0));
  CHECK(cuMemAddressReserve(&base, 4 * kMiB, 0, 0, 0));
  Map(base, 2 * kMiB, extent);
  Map(base + 2 * kMiB, 2 * kMiB, extent);
  CHECK(cuMemsetD32(base, 0x12345678, 16));
  CHECK(cuMemcpyDtoH(&value, base + 2 * kMiB, sizeof(value)));
  return Report(value == 0x12345678, {{"read through the other address", Hex(value)}});
}

// --- the keeper --------------------------------------------------------------------------------

bool SendDescriptor(int socket_fd, int fd) {
  char byte = 0, control[CMSG_SPACE(sizeof(int))] = {};
  iovec data = {&byte, 1};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  return sendmsg(socket_fd, &message, 0) == 1;
}

int ReceiveDescriptor(int socket_fd) {
  char byte = 0, control[CMSG_SPACE(sizeof(int))] = {};
  iovec data = {&byte, 1};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  if (recvmsg(socket_fd, &message, 0) != 1 || CMSG_FIRSTHDR(&message) == nullptr) return -1;
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
  return fd;
}

// Creates one extent without any context, hands it over, and lives until its end of the socket is
// closed.
pid_t StartKeeper(int* socket_fd) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) _exit(2);
  const pid_t keeper = fork();
  if (keeper == 0) {
    close(ends[0]);
    CHECK(cuInit(0));
    CUmemGenericAllocationHandle extent;
    const CUmemAllocationProp properties = Shareable();
    int fd = -1;
    CHECK(cuMemCreate(&extent, 2 * kMiB, &properties, 0));
    CHECK(cuMemExportToShareableHandle(&fd, extent, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    char byte;
    while (SendDescriptor(ends[1], fd) && read(ends[1], &byte, 1) == 1) {
    }
    _exit(0);
  }
  close(ends[1]);
  *socket_fd = ends[0];
  return keeper;
}

CUdeviceptr ImportAndMap(int fd) {
  CUmemGenericAllocationHandle extent;
  CUdeviceptr address = 0;
  CHECK(cuMemImportFromShareableHandle(&extent, reinterpret_cast<void*>(static_cast<intptr_t>(fd)),
                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  CHECK(cuMemAddressReserve(&address, 2 * kMiB, 0, 0, 0));
  Map(address, 2 * kMiB, extent);
  return address;
}

// Overturns: memory that outlives workers, owned by a process that no tenant's fault reaches.
int KeeperWithoutContext() {
  int socket_fd = -1;
  const pid_t keeper = StartKeeper(&socket_fd);
  const int fd = ReceiveDescriptor(socket_fd);
  if (fd < 0) return Report(false, {{"keeper", "sent no descriptor"}});
  MakeContext();
  const CUdeviceptr address = ImportAndMap(fd);
  unsigned value = 0;
  CHECK(cuMemsetD32(address, 77, 1));
  CHECK(cuMemcpyDtoH(&value, address, sizeof(value)));
  close(socket_fd);
  ChildResult(keeper);
  return Report(value == 77, {{"value", std::to_string(value)}});
}

constexpr char kStray[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry stray() {\n"
    ".reg .b64 %a; mov.u64 %a, 0x10; st.global.u32 [%a], 0; ret; }\n";

void Poison(CUdeviceptr address) {
  CUmodule module;
  CUfunction function;
  CHECK(cuMemsetD32(address, 4711, 1));
  CHECK(cuCtxSynchronize());
  CHECK(cuModuleLoadData(&module, kStray));
  CHECK(cuModuleGetFunction(&function, module, "stray"));
  CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  _exit(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS ? 0 : 1);
}

// Overturns: quiet sessions that survive a neighbour's fault with their memory.
int ExtentOutlivesPoison() {
  int socket_fd = -1;
  const pid_t keeper = StartKeeper(&socket_fd);
  const int first_fd = ReceiveDescriptor(socket_fd);
  const pid_t importer = fork();
  if (importer == 0) {
    MakeContext();
    Poison(ImportAndMap(first_fd));
  }
  const int poisoned = ChildResult(importer);
  (void)!write(socket_fd, "n", 1);
  const int second_fd = ReceiveDescriptor(socket_fd);
  if (poisoned != 0 || second_fd < 0)
    return Report(false, {{"importer", std::to_string(poisoned)}});
  MakeContext();
  unsigned value = 0;
  CHECK(cuMemcpyDtoH(&value, ImportAndMap(second_fd), sizeof(value)));
  close(socket_fd);
  ChildResult(keeper);
  return Report(value == 4711, {{"value after the fault", std::to_string(value)}});
}

// --- host memory and streams -------------------------------------------------------------------

// Overturns: pinned memory as a file that client and worker share.
int RegisterSharedFile() {
  MakeContext();
  const int fd = memfd_create("probe", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, 4 * kMiB) != 0) return Report(false, {{"memfd", "cannot be made"}});
  void* memory = mmap(nullptr, 4 * kMiB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CUdeviceptr device = 0;
  CHECK(cuMemHostRegister(memory, 4 * kMiB,
                          CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_PORTABLE));
  CHECK(cuMemHostGetDevicePointer(&device, memory, 0));
  CHECK(cuMemsetD32(device, 99, 4));
  CHECK(cuCtxSynchronize());
  const bool seen = *static_cast<volatile unsigned*>(memory) == 99;
  return Report(seen, {{"device address", Hex(device)},
                       {"host address", Hex(reinterpret_cast<uintptr_t>(memory))}});
}

// Overturns: holding one client's stream while its host function runs, beside busy neighbours.
int HeldStream() {
  MakeContext();
  CUstream held, busy;
  CUdeviceptr word, other;
  unsigned value = 0;
  CHECK(cuStreamCreate(&held, CU_STREAM_NON_BLOCKING));
  CHECK(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING));
  CHECK(cuMemAlloc(&word, 4096));
  CHECK(cuMemAlloc(&other, 4096));
  CHECK(cuMemsetD32(word, 0, 1));
  CHECK(cuMemsetD32(other, 0, 1));
  CHECK(cuCtxSynchronize());
  CHECK(cuStreamWaitValue32(held, word, 1, CU_STREAM_WAIT_VALUE_GEQ));
  CHECK(cuMemsetD32Async(other, 5, 1, held));
  for (unsigned i = 0; i < 1000; ++i) CHECK(cuMemsetD32Async(other + 64, i, 16, busy));
  CHECK(cuStreamSynchronize(busy));
  const bool waits = cuStreamQuery(held) == CUDA_ERROR_NOT_READY;
  CHECK(cuStreamWriteValue32(busy, word, 1, 0));
  CHECK(cuStreamSynchronize(held));
  CHECK(cuMemcpyDtoH(&value, other, sizeof(value)));
  return Report(waits && value == 5, {{"held while others ran", waits ? "yes" : "no"}});
}

// Overturns: the worker's relaxed capture of one session beside another's ordinary calls.
int RelaxedCapture() {
  MakeContext();
  CUstream stream;
  CUdeviceptr memory, other = 0;
  CUgraph graph;
  CUgraphExec executable;
  unsigned value = 0;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuMemAlloc(&memory, 4096));
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CHECK(cuMemsetD32Async(memory, 31, 16, stream));
  CHECK(cuMemAlloc(&other, kMiB));  // a foreign call that the global mode forbids
  CHECK(cuMemsetD32(other, 1, 16));
  CHECK(cuStreamEndCapture(stream, &graph));
  CHECK(cuGraphInstantiate(&executable, graph, 0));
  CHECK(cuGraphLaunch(executable, stream));
  CHECK(cuStreamSynchronize(stream));
  CHECK(cuMemcpyDtoH(&value, memory, sizeof(value)));
  return Report(value == 31, {{"value", std::to_string(value)}});
}

constexpr char kGlobals[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n.visible .global .align 4 .b32 state[1024];\n"
    ".visible .entry touch() {\n.reg .b64 %a; mov.u64 %a, state; st.global.u32 [%a], 1; ret; }\n";

// Informs: whether module variables keep their addresses when a module is loaded again.
int GlobalsAfterReload() {
  MakeContext();
  CUmodule module;
  CUdeviceptr first = 0, second = 0;
  size_t bytes = 0;
  CHECK(cuModuleLoadData(&module, kGlobals));
  CHECK(cuModuleGetGlobal(&first, &bytes, module, "state"));
  CHECK(cuModuleUnload(module));
  CHECK(cuModuleLoadData(&module, kGlobals));
  CHECK(cuModuleGetGlobal(&second, &bytes, module, "state"));
  return Report(
      true,
      {{"first", Hex(first)}, {"second", Hex(second)}, {"same", first == second ? "yes" : "no"}});
}

// Informs: how long unmapping and mapping an extent take while kernels of another stream run.
int UnmapUnderLoad() {
  MakeContext();
  CUmemGenericAllocationHandle extent;
  const CUmemAllocationProp properties = Shareable();
  CUdeviceptr address = 0, busy_memory = 0;
  CUstream busy;
  CHECK(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING));
  CHECK(cuMemAlloc(&busy_memory, 64 * kMiB));
  CHECK(cuMemCreate(&extent, 64 * kMiB, &properties, 0));
  CHECK(cuMemAddressReserve(&address, 64 * kMiB, 0, 0, 0));
  Map(address, 64 * kMiB, extent);
  double slowest_us = 0;
  for (int round = 0; round < 20; ++round) {
    for (unsigned i = 0; i < 50; ++i) CHECK(cuMemsetD8Async(busy_memory, i & 255, 64 * kMiB, busy));
    const double begin_us = NowUs();
    CHECK(cuMemUnmap(address, 64 * kMiB));
    Map(address, 64 * kMiB, extent);
    const double took_us = NowUs() - begin_us;
    slowest_us = took_us > slowest_us ? took_us : slowest_us;
    CHECK(cuStreamSynchronize(busy));
  }
  return Report(true, {{"slowest unmap and map of 64 MiB, us", std::to_string(slowest_us)}});
}

struct Probe {
  const char* name;
  int (*run)();
};
constexpr Probe kProbes[] = {
    {"same-address", SameAddress},
    {"extent-at-two-addresses", ExtentAtTwoAddresses},
    {"keeper-without-context", KeeperWithoutContext},
    {"extent-outlives-poison", ExtentOutlivesPoison},
    {"register-shared-file", RegisterSharedFile},
    {"held-stream", HeldStream},
    {"relaxed-capture", RelaxedCapture},
    {"globals-after-reload", GlobalsAfterReload},
    {"unmap-under-load", UnmapUnderLoad},
};

}  // namespace

int main(int argc, char** argv) {
  const std::string wanted = argc > 1 ? argv[1] : "";
  for (const Probe& probe : kProbes) {
    if (wanted == "--list") std::printf("%s\n", probe.name);
    if (wanted == probe.name) return probe.run();
  }
  if (wanted == "--list") return 0;
  std::fprintf(stderr, "usage: gpu_probe NAME | --list\n");
  return 2;
}
