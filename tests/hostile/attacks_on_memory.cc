// Addresses, lengths and objects: what is not there or another's, what shrinks, what never ends.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/hostile/attacks.h"

namespace hostile {
namespace {

using ipc::Op;
using ipc::limits::MiB;

constexpr uint64_t kMapped = 2 * MiB;  // from the arena's base on; nothing backs what follows

// Every call that copies or fills, with `bad` for one of its addresses.
void CallWith(RawClient* client, const std::string& what, uint64_t bad) {
  const uint64_t good = client->base();
  const auto call = [&](const char* name, Op op, const Body& body) {
    PrintReply((std::string(name) + " " + what).c_str(), client->Call(op, body));
  };
  call("copy from", Op::CopyDevice, Body().U64(good).U64(bad).U64(8).U32(1).Mark(0));
  call("copy to", Op::CopyDevice, Body().U64(bad).U64(good).U64(8).U32(1).Mark(0));
  call("staged in", Op::CopyStagedIn, Body().U64(bad).U64(0).U64(8).U32(1).Mark(0));
  call("staged out", Op::CopyStagedOut, Body().U64(0).U64(bad).U64(8).U32(1).Mark(0));
  call("rows from", Op::CopyPitched,
       Body().U64(good).U64(64).U64(bad).U64(64).U64(8).U64(2).U32(1).Mark(0));
  call("fill", Op::cuMemsetD8Async, Body().U64(bad).U8(1).U64(8).U32(1));
  call("write value", Op::cuStreamWriteValue32_v2, Body().U32(1).U64(bad).U32(1).U32(0));
}

}  // namespace

int Copy(const Arguments&) {
  const std::unique_ptr<RawClient> client = EnterWithMemory(kMapped);
  if (client == nullptr) return 1;
  AwaitGo();
  const uint64_t base = client->base();
  const uint64_t neighbour =
      client->slot() == 0 ? base + ipc::limits::kSlotBytes : base - ipc::limits::kSlotBytes;
  CallWith(client.get(), "unbacked", base + 64 * MiB);
  CallWith(client.get(), "half backed", base + kMapped - 4);
  CallWith(client.get(), "in the lane", client->lane());
  CallWith(client.get(), "of another", neighbour);
  CallWith(client.get(), "at the end", ~uint64_t{0} - 3);
  // Lengths that wrap around.
  PrintReply("copy of 2^64-1",
             client->Call(Op::CopyDevice,
                          Body().U64(base).U64(base + 8).U64(~uint64_t{0}).U32(1).Mark(0)));
  PrintReply("rows of 2^63", client->Call(Op::CopyPitched, Body()
                                                               .U64(base)
                                                               .U64(uint64_t{1} << 63)
                                                               .U64(base)
                                                               .U64(uint64_t{1} << 63)
                                                               .U64(8)
                                                               .U64(3)
                                                               .U32(1)
                                                               .Mark(0)));
  client->Post(Op::CopyDevice, Body().U64(base).U64(base + 64 * MiB).U64(8).U32(1).Mark(0));
  PrintReply("ping", client->Call(Op::Ping, Body().U64(7).U8(1)));
  std::printf("error %u\n", client->async_error());
  PrintLoss(*client);
  return 0;
}

// A stride leads from the session's own memory into another's; or there is nothing at an address.
int Blas(const Arguments& arguments) {
  if (arguments.size() != 2) return 2;
  const std::string& way = arguments[0];
  const std::unique_ptr<RawClient> client = EnterWithMemory(kMapped);
  if (client == nullptr) return 1;
  constexpr uint32_t kHandle = 3;
  PrintReply("create", client->Call(Op::cublasCreate_v2, Body().U32(kHandle)));
  const uint64_t base = client->base();
  const uint64_t slot = std::strtoull(arguments[1].c_str(), nullptr, 10);
  const uint64_t other = ipc::limits::kSlotBase + slot * ipc::limits::kSlotBytes;
  std::printf("slot %" PRIu32 "\n", client->slot());
  const int64_t stride = static_cast<int64_t>(other - base) / 4;
  const auto copy = [&](uint64_t from, int64_t from_stride, uint64_t to, int64_t to_stride) {
    return Body().U32(kHandle).U64(2).U64(from).Put(from_stride).U64(to).Put(to_stride);
  };
  PrintReply("own copy", client->Call(Op::cublasScopy_v2_64, copy(base, 1, base + 4096, 1)));
  AwaitGo();
  if (way == "steal") client->Post(Op::cublasScopy_v2_64, copy(base, stride, base + 4096, 1));
  if (way == "poke") client->Post(Op::cublasScopy_v2_64, copy(base, 0, base, stride));
  if (way == "crash") {
    const Body sum = Body().U32(kHandle).U64(4).U64(base + 64 * MiB).U64(1).U64(base);
    client->Post(Op::cublasSasum_v2_64, sum);
  }
  (void)client->AwaitLoss();
  PrintLoss(*client);
  return 0;
}

// The files of the session cannot become shorter or longer; what is cut out of them is zero.
int Truncate(const Arguments&) {
  const std::unique_ptr<RawClient> client = EnterWithMemory(kMapped);
  if (client == nullptr) return 1;
  const Body range = Body().U64(client->pinned()).U64(MiB).U32(0);
  PrintReply("pinned", client->Call(Op::PinnedAlloc, range));
  AwaitGo();
  const auto result = [](int failed) { return failed == 0 ? 0 : errno; };
  const auto punch = [&](int fd, size_t from, size_t bytes) {
    return result(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                            static_cast<off_t>(from), static_cast<off_t>(bytes)));
  };
  for (const int fd : {client->session_fd(), client->pinned_fd()}) {
    const int shrunk = result(ftruncate(fd, 0)), grown = result(ftruncate(fd, off_t{1} << 40));
    std::printf("shrink: errno %d, grow: errno %d\n", shrunk, grown);
  }
  std::printf("punch pinned: errno %d\n", punch(client->pinned_fd(), 0, MiB));
  std::printf("punch staging: errno %d\n",
              punch(client->session_fd(), ipc::kStagingOffset, ipc::limits::kStagingBytes));
  client->Post(Op::CopyDevice,
               Body().U64(client->base()).U64(client->pinned()).U64(4096).U32(1).Mark(0));
  uint32_t word = 1;
  const bool read = client->Read(client->base(), std::as_writable_bytes(std::span(&word, 1)));
  std::printf("read %d: %" PRIu32 "\n", read, word);
  PrintLoss(*client);
  // Now everything: positions, doorbells and the loss itself.
  std::printf("punch all: errno %d\n", punch(client->session_fd(), 0, ipc::kSessionFileBytes));
  (void)client->AwaitLoss();
  PrintLoss(*client);
  return 0;
}

namespace {

void HoldLegacyStream(RawClient* client) {
  client->Post(Op::cuStreamWaitValue32_v2, Body().U32(1).U64(client->base()).U32(1).U32(0));
}

// One for each completion word.
void ManyStreams(RawClient* client) {
  constexpr uint32_t kFirst = ipc::limits::kLegacySlots, kEnd = ipc::limits::kStreamsMax;
  Reply reply;
  uint32_t made = 0;
  for (;; ++made) {
    const uint32_t slot = kFirst + made % (kEnd - kFirst);
    reply = client->Call(Op::StreamCreate, Body().U32(3 + made).U32(1).U32(0).U32(slot));
    if (!reply.came || reply.status != 0) break;
  }
  std::printf("made %" PRIu32 "\n", made);
  PrintReply("one more", reply);
  PrintReply("a name beyond",
             client->Call(Op::StreamCreate, Body().U32(kEnd).U32(1).U32(0).U32(kFirst)));
}

// Streams that are destroyed while they wait.
void ManyEnding(RawClient* client) {
  constexpr uint32_t kFirst = ipc::limits::kLegacySlots, kEnd = ipc::limits::kStreamsMax;
  Reply reply;
  uint32_t made = 0;
  for (;; ++made) {
    const uint32_t slot = kFirst + made % (kEnd - kFirst);
    reply = client->Call(Op::StreamCreate, Body().U32(3).U32(1).U32(0).U32(slot));
    if (!reply.came || reply.status != 0) break;
    client->Post(Op::cuStreamWaitValue32_v2, Body().U32(3).U64(client->base()).U32(1).U32(0));
    client->Post(Op::StreamDestroy, Body().U32(3));
  }
  std::printf("made %" PRIu32 "\n", made);
  PrintReply("one more", reply);
}

void ManyEvents(RawClient* client) {
  for (uint32_t name = 3; name < ipc::limits::kEventsMax; ++name)
    client->Post(Op::cuEventCreate, Body().U32(name).U32(0));
  PrintReply("ping", client->Call(Op::Ping, Body().U64(7).U8(1)));
  std::printf("error %u\n", client->async_error());
  PrintReply("one more",
             client->Call(Op::cuEventCreate, Body().U32(ipc::limits::kEventsMax).U32(0)));
}

void ManyNodes(RawClient* client) {
  client->Post(Op::GraphBegin, Body().U32(3));
  for (uint32_t node = 0; node <= ipc::limits::kGraphNodesMax; ++node)
    client->Post(Op::GraphEmpty, Body().U32(3).U32(node));
  PrintReply("seal", client->Call(Op::GraphSeal, Body().U32(3)));
  client->Post(Op::GraphEnd, Body().U32(3));
  client->Post(Op::GraphBegin, Body().U32(4));
  client->Post(Op::GraphEmpty, Body().U32(4).U32(0));
  (void)client->async_error();
  PrintReply("seal of another", client->Call(Op::GraphSeal, Body().U32(4)));
}

// As many as the stream, the worker and the ring take.
void ManyFills(RawClient* client) {
  constexpr int64_t kFullUs = 1'000'000;
  HoldLegacyStream(client);
  const std::vector<std::byte> fill =
      Body().U64(client->base() + 4096).U8(1).U64(64).U32(1).Bytes();
  uint64_t sent = 0;
  while (sent < 10'000'000 &&
         client->Send(Op::cuMemsetD8Async, fill, 0, RawClient::kContext, kFullUs)) {
    ++sent;
  }
  std::printf("sent %" PRIu64 "\n", sent);
}

}  // namespace

int Many(const Arguments& arguments) {
  if (arguments.size() != 1) return 2;
  const std::string& kind = arguments[0];
  const std::unique_ptr<RawClient> client = EnterWithMemory(kMapped);
  if (client == nullptr) return 1;
  AwaitGo();
  if (kind == "streams") ManyStreams(client.get());
  if (kind == "ending") ManyEnding(client.get());
  if (kind == "events") ManyEvents(client.get());
  if (kind == "graphs") ManyNodes(client.get());
  if (kind == "memsets") ManyFills(client.get());
  PrintLoss(*client);
  std::printf("done\n");
  AwaitStop();
  return 0;
}

}  // namespace hostile
