// Frames are walked on the program's own stacks, whatever they are.
#include "shim/call_site.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <atomic>
#include <climits>
#include <cstring>
#include <thread>
#include <vector>

namespace shim_test {
namespace {

__attribute__((noinline)) uint64_t SiteA() { return shim::CallSite() + 0; }
__attribute__((noinline)) uint64_t SiteB() { return shim::CallSite() + 0; }

TEST(CallSite, IsTheSameEachTimeAndDiffersByCaller) {
  uint64_t a[3], b = 0;
  for (uint64_t& site : a) site = SiteA();
  b = SiteB();
  EXPECT_NE(a[0], 0u);
  EXPECT_EQ(a[0], a[1]);
  EXPECT_EQ(a[1], a[2]);
  EXPECT_NE(a[0], b);
}

TEST(CallSite, WorksOnTheSmallestThread) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN + (16 << 10)), 0);
  pthread_t thread;
  void* result = nullptr;
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void*) -> void* { return reinterpret_cast<void*>(SiteA()); }, nullptr),
            0);
  ASSERT_EQ(pthread_join(thread, &result), 0);
  EXPECT_NE(result, nullptr);
  pthread_attr_destroy(&attributes);
}

ucontext_t main_context, coroutine;
uint64_t coroutine_site = 0;

TEST(CallSite, WorksOnACoroutinesStack) {
  static char stack[64 << 10];
  ASSERT_EQ(getcontext(&coroutine), 0);
  coroutine.uc_stack.ss_sp = stack;
  coroutine.uc_stack.ss_size = sizeof stack;
  coroutine.uc_link = &main_context;
  makecontext(
      &coroutine, [] { coroutine_site = SiteA(); }, 0);
  ASSERT_EQ(swapcontext(&main_context, &coroutine), 0);
  EXPECT_NE(coroutine_site, 0u);
}

// Code made at run time has no unwind information, and its frame pointer may be anything.
#if defined(__x86_64__)
TEST(CallSite, SurvivesCodeWithoutUnwindInformationAndAStrayFramePointer) {
  void* const page =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  for (const uint64_t stray :
       {uint64_t{0}, uint64_t{0x1234}, uint64_t{0xdead00000000}, ~uint64_t{7}}) {
    unsigned char code[] = {0x55,                                // push rbp
                            0x48, 0xbd, 0, 0, 0, 0, 0, 0, 0, 0,  // mov rbp, stray
                            0xff, 0xd7,                          // call rdi
                            0x5d, 0xc3};                         // pop rbp; ret
    std::memcpy(code + 3, &stray, sizeof stray);
    std::memcpy(page, code, sizeof code);
    const auto run = reinterpret_cast<uint64_t (*)(uint64_t(*)())>(page);
    for (int i = 0; i < 3; ++i) EXPECT_NE(run(&SiteA), 0u);
  }
  munmap(page, 4096);
}
#endif

TEST(CallSite, ThreadsDoNotDisturbEachOther) {
  std::vector<std::thread> threads;
  std::atomic<int> different{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      uint64_t first = 0;
      for (volatile int round = 0; round < 1000; round = round + 1) {  // one call, not unrolled
        const uint64_t site = SiteA();
        if (first == 0) first = site;
        if (site != first) different.fetch_add(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(different.load(), 0);
}

}  // namespace
}  // namespace shim_test
