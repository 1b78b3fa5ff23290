// What a program sees when its session ends: one code from then on, one sentence, and no hang. Each
// case needs a process of its own.
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "ipc/session_file.h"
#include "tests/shim/fixture.h"

namespace {

using std::chrono::steady_clock;

int Code(bool fine) { return fine ? 0 : 1; }

void Begin(CUcontext* context, uint32_t worker_pid = 0) {
  shim_test::FakeWorker::Start(worker_pid);
  if (local::cuInit(0) != CUDA_SUCCESS || local::cuCtxCreate_v2(context, 0, 0) != CUDA_SUCCESS)
    _exit(90);
}

class Loss : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(Loss, IsStickyAndSaidOnce) {
  EXPECT_EXIT(
      {
        CUcontext context = nullptr;
        Begin(&context);
        ipc::MarkLost(shim_test::FakeWorker::Start().page(), CUDA_ERROR_ILLEGAL_ADDRESS,
                      "a kernel strayed");
        CUdeviceptr address = 0;
        const bool fine = local::cuMemAlloc_v2(&address, 1) == CUDA_ERROR_ILLEGAL_ADDRESS &&
                          local::cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS &&
                          local::cuInit(0) == CUDA_ERROR_ILLEGAL_ADDRESS;
        _exit(Code(fine));
      },
      ::testing::ExitedWithCode(0), "^laneway: a kernel strayed\n$");
}

TEST_F(Loss, ACallThatTheDaemonLacksIsRefusedAndSaidOnce) {
  EXPECT_EXIT(
      {
        ipc::Tables earlier = ipc::OwnTables();
        earlier.rows[static_cast<size_t>(ipc::Library::kLaneway)] =
            ipc::IndexOf(ipc::Op::StreamCreate);
        shim_test::FakeWorker::Start(0, earlier);
        CUcontext context = nullptr;
        CUstream stream = nullptr;
        size_t free = 0;
        size_t total = 0;
        const bool fine = local::cuInit(0) == CUDA_SUCCESS &&
                          local::cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS &&
                          local::cuStreamCreate(&stream, 0) == CUDA_ERROR_NOT_SUPPORTED &&
                          local::cuStreamCreate(&stream, 0) == CUDA_ERROR_NOT_SUPPORTED &&
                          local::cuMemGetInfo_v2(&free, &total) == CUDA_SUCCESS;
        _exit(Code(fine));
      },
      ::testing::ExitedWithCode(0),
      "^laneway: the daemon is older than this program's Laneway and has no StreamCreate;.*\n$");
}

TEST_F(Loss, EndsEveryWait) {
  EXPECT_EXIT(
      {
        CUcontext context = nullptr;
        Begin(&context);
        shim_test::FakeWorker& worker = shim_test::FakeWorker::Start();
        CUdeviceptr address = 0;
        char byte = 0;
        local::cuMemAlloc_v2(&address, 64);
        worker.Hold();
        local::cuMemcpyHtoD_v2(address, &byte, 1);
        CUresult seen[2] = {};
        std::thread waiter([&] {
          local::cuCtxSetCurrent(context);
          seen[0] = local::cuCtxSynchronize();
        });
        while (worker.counts()["StreamMark"] < 2)
          std::this_thread::yield();  // it is about to sleep
        worker.Stop();
        std::thread caller([&] {
          local::cuCtxSetCurrent(context);
          size_t free = 0, total = 0;
          seen[1] = local::cuMemGetInfo_v2(&free, &total);
        });
        const steady_clock::time_point lost = steady_clock::now();
        ipc::MarkLost(worker.page(), CUDA_ERROR_MPS_RPC_FAILURE, "the worker is gone");
        waiter.join();
        caller.join();
        const bool quick = steady_clock::now() - lost < std::chrono::seconds(1);
        _exit(Code(quick && seen[0] == CUDA_ERROR_MPS_RPC_FAILURE &&
                   seen[1] == CUDA_ERROR_MPS_RPC_FAILURE));
      },
      ::testing::ExitedWithCode(0), "^laneway: the worker is gone\n$");
}

TEST_F(Loss, ADeadWorkerIsNoticedWithoutTheDaemon) {
  EXPECT_EXIT(
      {
        const pid_t worker_pid = fork();
        if (worker_pid == 0) {
          for (;;) pause();
        }
        CUcontext context = nullptr;
        Begin(&context, static_cast<uint32_t>(worker_pid));
        shim_test::FakeWorker& worker = shim_test::FakeWorker::Start();
        worker.Stop();
        kill(worker_pid, SIGKILL);
        size_t free = 0;
        size_t total = 0;
        const CUresult result = local::cuMemGetInfo_v2(&free, &total);
        waitpid(worker_pid, nullptr, 0);
        _exit(Code(result == CUDA_ERROR_MPS_RPC_FAILURE));
      },
      ::testing::ExitedWithCode(0), "^laneway: the worker process ended");
}

TEST_F(Loss, AForkedChildIsNotInitialized) {
  EXPECT_EXIT(
      {
        CUcontext context = nullptr;
        Begin(&context);
        const pid_t child = fork();
        if (child == 0) {
          CUdeviceptr address = 0;
          const bool fine = local::cuMemAlloc_v2(&address, 1) == CUDA_ERROR_NOT_INITIALIZED &&
                            local::cuInit(0) == CUDA_ERROR_NOT_INITIALIZED;
          _exit(Code(fine));
        }
        int status = 0;
        waitpid(child, &status, 0);
        CUdeviceptr address = 0;
        _exit(Code(WIFEXITED(status) && WEXITSTATUS(status) == 0 &&
                   local::cuMemAlloc_v2(&address, 1) == CUDA_SUCCESS));
      },
      ::testing::ExitedWithCode(0), "^laneway: this process was forked");
}

TEST_F(Loss, NothingWorksBeforeInit) {
  EXPECT_EXIT(
      {
        int count = 0;
        _exit(Code(local::cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED));
      },
      ::testing::ExitedWithCode(0), "^$");
}

TEST_F(Loss, WithoutADaemonTheSentenceSaysWhatToDo) {
  EXPECT_EXIT(
      {
        char directory[] = "/tmp/laneway-test-XXXXXX";
        if (mkdtemp(directory) == nullptr) _exit(91);
        setenv("LANEWAY_RUNTIME_DIR", directory, 1);
        const CUresult result = local::cuInit(0);
        rmdir(directory);
        _exit(Code(result == CUDA_ERROR_MPS_CONNECTION_FAILED));
      },
      ::testing::ExitedWithCode(0), "^laneway: no daemon .* start the program with `laneway run");
}

}  // namespace
