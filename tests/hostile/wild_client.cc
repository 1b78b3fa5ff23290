// A client that sends random calls of all rows of the tables, session after session, to the real
// processes; every session is a process of its own, and ends in the middle of what it does.
//
//     wild_client SEED SECONDS [SESSION]
//     -> "session N: CALLS calls, ENDED" for each; with SESSION that one alone, and every call
//
// The calls of a session follow from the seed and its number alone.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "ipc/calls/vendor.h"
#include "ipc/futex.h"
#include "tests/hostile/raw_client.h"
#include "tests/hostile/wild_call.h"

namespace hostile {
namespace {

using ipc::Op;
using ipc::limits::MiB;

constexpr int kCalls = 400;           // of one session
constexpr int64_t kReplyUs = 30'000;  // some calls wait for other sessions, or for their turn
// Then the session waits for a stream that it holds itself: its end is all that is left to see.
constexpr int kSilentMax = 8;
constexpr uint32_t kNames = 4;  // of each kind
constexpr uint64_t kMapped = 4 * MiB, kLane = 8 * MiB, kPinned = 1 * MiB;

constexpr char kImage[] =
    ".version 8.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry idle(.param .u64 unused) { ret; }\n";

// A batched cuBLAS call reads pointers that lie in device memory, which the worker, like a kernel's
// parameters, does not inspect: one that reaches nowhere ends the worker, as on hardware.
bool ReadsPointersOnDevice(const ipc::Row& row) {
  return row.name.find("Batched") != std::string_view::npos &&
         row.name.find("StridedBatched") == std::string_view::npos;
}

std::vector<Op> RemoteOps(ipc::Library library) {
  std::vector<Op> ops;
  const std::span<const ipc::Row> rows = ipc::RowsOf(library);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].remote && !ReadsPointersOnDevice(rows[i])) ops.push_back(ipc::OpAt(library, i));
  }
  return ops;
}

class WildSession {
 public:
  WildSession(RawClient* client, uint64_t seed, bool talks)
      : client_(*client), random_(seed), talks_(talks) {
    target_ = {client->base(), kMapped, kLane, kPinned, kNames};
    for (const ipc::Library library : {ipc::Library::kDriver, ipc::Library::kCublas,
                                       ipc::Library::kCublasLt, ipc::Library::kLaneway}) {
      ops_.push_back(RemoteOps(library));
    }
  }

  // Objects and memory, so that random calls hit something.
  void SetUp() {
    (void)client_.Call(Op::ArenaMap, Body().U64(client_.base()).U64(kMapped), kReplyUs);
    (void)client_.Call(Op::PinnedAlloc, Body().U64(client_.pinned()).U64(kPinned).U32(0), kReplyUs);
    (void)client_.Call(Op::LaneReserve, Body().U64(kLane), kReplyUs);
    for (uint32_t name = 3; name < 3 + kNames; ++name) {
      client_.Post(Op::StreamCreate, Body().U32(name).U32(name % 2).U32(0).U32(16 + name));
      client_.Post(Op::cuEventCreate, Body().U32(name).U32(0));
    }
    const CUDA_ARRAY3D_DESCRIPTOR array = {
        32, 16, 4, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST};
    for (uint32_t name = 3; name < 3 + kNames; ++name)
      client_.Post(Op::ArrayCreate, Body().U32(name).Range(&array, sizeof array));
    client_.Post(Op::MipmapCreate, Body().U32(3).Range(&array, sizeof array).U32(4));
    client_.Post(Op::cublasCreate_v2, Body().U32(3));
    client_.Post(Op::cublasLtCreate, Body().U32(3));
    const ipc::ModuleHash hash{{random_(), random_()}};
    const Body image = Body()
                           .Range(&hash, sizeof hash)
                           .U64(0)
                           .U64(sizeof kImage)
                           .Range(kImage, sizeof kImage)
                           .U64(sizeof kImage);
    client_.Post(Op::ModuleBytes, image);
    const Body load = Body()
                          .U32(3)
                          .Range(&hash, sizeof hash)
                          .Range(nullptr, 0)
                          .Range(nullptr, 0)
                          .U32(0)
                          .U8(0)
                          .U32(0)
                          .U8(0)
                          .U32(0);
    (void)client_.Call(Op::LoadModule, load, kReplyUs);
    (void)client_.Call(Op::GetFunction, Body().U32(3).U32(3).Text("idle").U8(1).U8(0).U32(0),
                       kReplyUs);
  }

  int Run(int calls) {
    int sent = 0;
    for (; sent < calls && client_.loss() == 0 && silent_ < kSilentMax; ++sent) {
      if (random_() % 16 == 0) client_.Boundary();
      CallAny();
    }
    return sent;
  }

 private:
  void CallAny() {
    // Laneway's own calls are few, and reach furthest.
    constexpr uint64_t kWeights[] = {25, 12, 13, 50};
    uint64_t at = random_() % 100;
    size_t library = 0;
    while (at >= kWeights[library]) at -= kWeights[library++];
    const Op op = ops_[library][random_() % ops_[library].size()];
    // After such a call the stream takes no more work until the session ends.
    if (ipc::RowOf(op).name.starts_with("cuStreamWaitValue") && random_() % 16 != 0) return;
    const std::vector<std::byte> body = WildCall(op, target_, &random_).Body();
    const bool asks = ipc::RowOf(op).route == ipc::Route::kSync || random_() % 4 == 0;
    const uint32_t context =
        random_() % 30 == 0 ? static_cast<uint32_t>(random_()) : RawClient::kContext;
    if (talks_) {
      std::printf("%s", std::string(ipc::RowOf(op).name).c_str());
      for (const std::byte byte : body) std::printf(" %02x", static_cast<unsigned>(byte));
      std::printf("\n");
      std::fflush(stdout);
    }
    if (!client_.Send(op, body, asks ? ipc::kWantsReply : 0, context) || !asks) return;
    const Reply reply = client_.Await(kReplyUs);
    silent_ = reply.came ? 0 : silent_ + 1;
    if (talks_) std::printf("  -> %s %u\n", reply.came ? "replied" : "no reply", reply.status);
  }

  RawClient& client_;
  std::mt19937_64 random_;
  const bool talks_;
  int silent_ = 0;  // calls without a reply, one after the other
  Target target_;
  std::vector<std::vector<Op>> ops_;
};

// Of a process of its own: its exit status is the number of the call that it came to, in tens.
[[noreturn]] void RunSession(uint64_t seed, uint64_t number, bool talks) {
  absl::StatusOr<std::unique_ptr<RawClient>> client = RawClient::Open();
  if (!client.ok()) {
    std::printf("session %llu: %s\n", static_cast<unsigned long long>(number),
                std::string(client.status().message()).c_str());
    std::fflush(stdout);
    _exit(1);
  }
  WildSession session(client->get(), seed * 1'000'003 + number, talks);
  session.SetUp();
  const int calls = session.Run(kCalls);
  std::printf("session %llu: %d calls, loss %u %s\n", static_cast<unsigned long long>(number),
              calls, (*client)->loss(), std::string((*client)->loss_text()).c_str());
  std::fflush(stdout);
  _exit(0);
}

}  // namespace
}  // namespace hostile

int main(int argc, char** argv) {
  const uint64_t seed = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  const int64_t seconds = argc > 2 ? std::strtoll(argv[2], nullptr, 10) : 10;
  if (argc > 3) hostile::RunSession(seed, std::strtoull(argv[3], nullptr, 10), true);
  const int64_t end_ns = ipc::MonotonicNs() + seconds * 1'000'000'000;
  for (uint64_t number = 0; ipc::MonotonicNs() < end_ns; ++number) {
    const pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) hostile::RunSession(seed, number, false);
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status)) {
      std::printf("session %llu: ended by signal %d\n", static_cast<unsigned long long>(number),
                  WTERMSIG(status));
      return 1;
    }
  }
  return 0;
}
