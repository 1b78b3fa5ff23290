// Attacks of a session that has left its lane on whatever lies in there now. A worker must serve
// them in the session's turn, when nothing of another lies there, or not at all.
#include <atomic>
#include <cstdio>

#include "ipc/futex.h"
#include "tests/hostile/attacks.h"

namespace hostile {
namespace {

using ipc::Op;
using ipc::limits::MiB;

constexpr uint64_t kPage = 4096;
constexpr uint64_t kPart = 2 * MiB;  // of a lane
constexpr uint32_t kOwnWord = 0x600df00d, kStrayWord = 0xdeadbeef;

Reply Reserve(RawClient* client, uint64_t bytes) {
  return client->Call(Op::LaneReserve, Body().U64(bytes));
}

Reply KeepPart(RawClient* client, uint64_t part) {
  return client->Call(Op::LaneKeep, Body().U64(client->lane() + part * kPart).U64(kPart));
}

void DropPart(RawClient* client, uint64_t part) {
  client->Post(Op::LaneDrop, Body().U64(client->lane() + part * kPart));
}

// Enters a lane, writes, and is at a boundary from then on.
bool VisitLane(RawClient* client, uint64_t bytes) {
  const Reply reserved = Reserve(client, bytes);
  PrintReply("reserve", reserved);
  if (!reserved.came || reserved.status != 0) return false;
  const bool written = client->Write(client->lane(), std::as_bytes(std::span(&kOwnWord, 1)));
  std::printf("write %d\n", written);
  return written && client->Boundary();
}

}  // namespace

// Takes parts out of the lane, more than it has room for in the end, and gives them back.
int Keep(const Arguments&) {
  constexpr uint64_t kBytes = 8 * MiB, kParts = kBytes / kPart;
  const std::unique_ptr<RawClient> client = Enter();
  if (client == nullptr) return 1;
  PrintReply("keep without a lane", KeepPart(client.get(), 0));
  if (!VisitLane(client.get(), kBytes)) return 1;
  AwaitGo();
  Tally kept;
  for (uint64_t i = 0; !ToldToStop() && kept.Count(KeepPart(client.get(), i % kParts)); ++i) {
    DropPart(client.get(), i % kParts);
    if (i % kParts == kParts - 1) client->Boundary();
  }
  kept.Print("keep");
  PrintReply("keep outside the lane", KeepPart(client.get(), 1024));
  client->Boundary();
  PrintReply("give back", Reserve(client.get(), 0));
  PrintReply("keep after the lane", KeepPart(client.get(), 0));
  PrintLoss(*client);
  return 0;
}

// The job's limit lies above its lane and below what it keeps: a keep is refused, and the block
// that it was for keeps the lane as it is: once, or again and again.
int Pin(const Arguments& arguments) {
  if (arguments.size() != 1) return 2;
  constexpr uint64_t kBytes = 8 * MiB, kParts = kBytes / kPart;
  const std::unique_ptr<RawClient> client = Enter();
  if (client == nullptr || !VisitLane(client.get(), kBytes)) return 1;
  AwaitGo();
  Tally kept;
  bool goes_on = true;
  while (goes_on && !ToldToStop()) {
    for (uint64_t part = 0; goes_on && part < kParts; ++part)
      goes_on = kept.Count(KeepPart(client.get(), part));
    if (arguments[0] == "once") {
      std::printf("pinned\n");
      AwaitStop();
      goes_on = false;
    }
    for (uint64_t part = 0; part < kParts; ++part) DropPart(client.get(), part);
    client->Boundary();
  }
  kept.Print("keep");
  PrintLoss(*client);
  return 0;
}

// A word into every page, by a stream memory operation.
int WriteValue(const Arguments&) {
  constexpr uint64_t kBytes = 16 * MiB, kAtOnce = 256;
  const std::unique_ptr<RawClient> client = Enter();
  if (client == nullptr || !VisitLane(client.get(), kBytes)) return 1;
  AwaitGo();
  Tally written;
  const auto body = [&](uint64_t page) {
    const uint64_t address = client->lane() + page * kPage % kBytes;
    return Body().U32(1).U64(address).U32(kStrayWord).U32(0);
  };
  for (uint64_t page = 0; !ToldToStop(); page += kAtOnce) {
    for (uint64_t i = 1; i < kAtOnce; ++i)
      client->Post(Op::cuStreamWriteValue32_v2, body(page + i));
    if (!written.Count(client->Call(Op::cuStreamWriteValue32_v2, body(page)))) break;
    client->Boundary();
  }
  written.Print("write value");
  std::printf("error %u\n", client->async_error());
  PrintLoss(*client);
  return 0;
}

// A message is no work when it is looked at, and a fill when it is served: its number changes to
// and fro while it lies in the ring. Both calls have bodies of equal length.
int Peek(const Arguments&) {
  constexpr uint64_t kBytes = 16 * MiB;
  constexpr uint16_t kWork = static_cast<uint16_t>(Op::cuMemsetD32Async);
  constexpr uint16_t kIdle = static_cast<uint16_t>(Op::EventRecord);
  const std::unique_ptr<RawClient> client = Enter();
  if (client == nullptr || !VisitLane(client.get(), kBytes)) return 1;
  AwaitGo();
  Tally served;
  const std::vector<std::byte> body = Body()
                                          .U64(client->lane() + kPage)
                                          .U32(kStrayWord)
                                          .U64((kBytes - kPage) / sizeof kStrayWord)
                                          .U32(1)
                                          .Bytes();
  const std::atomic<uint64_t>& taken = client->page()->to_worker.tail;
  for (uint64_t i = 0; !ToldToStop() && client->loss() == 0; ++i) {
    const uint64_t before = taken.load();
    if (!client->Send(i % 2 == 0 ? Op::EventRecord : Op::cuMemsetD32Async, body, ipc::kWantsReply))
      break;
    volatile uint16_t* const op =
        reinterpret_cast<uint16_t*>(client->placed() + offsetof(ipc::MessageHeader, op));
    while (taken.load() == before && client->loss() == 0) {
      *op = kWork;
      ipc::CpuRelax();
      *op = kIdle;
      for (int pause = 0; pause < 2; ++pause) ipc::CpuRelax();
    }
    if (!served.Count(client->Await(RawClient::kPatienceUs))) break;
    client->Boundary();
  }
  served.Print("served");
  PrintLoss(*client);
  return 0;
}

}  // namespace hostile
