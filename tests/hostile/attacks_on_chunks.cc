// Chunks as no client makes them: repeats of what lies nowhere, of what is no message, and orders
// without end.
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "ipc/chunks/chunk_format.h"
#include "ipc/message.h"
#include "tests/hostile/attacks.h"

namespace hostile {
namespace {

using ipc::Op;
namespace limits = ipc::limits;

constexpr uint32_t kRunBytes = 64;  // of a header and a body that is all zeros

// Repeats what lies there. `patches`: pairs of a word and its value, of which `count` are
// announced.
bool Repeat(RawClient* client, uint32_t offset, uint32_t bytes,
            const std::vector<uint32_t>& patches = {}, uint32_t count = ~0u, uint32_t verify = 0) {
  Body body;
  body.U32(offset).U32(bytes);
  body.U32(count == ~0u ? static_cast<uint32_t>(patches.size() / 2) : count).U32(verify);
  body.Raw(patches.data(), patches.size() * sizeof(uint32_t));
  return client->Send(Op::Ping, body.Bytes(), ipc::kRepeatsChunk);
}

void WriteRun(RawClient* client, uint32_t offset, const ipc::MessageHeader& header) {
  std::memset(client->chunks() + offset, 0, kRunBytes);
  std::memcpy(client->chunks() + offset, &header, sizeof header);
}

ipc::MessageHeader LaunchHeader() {
  ipc::MessageHeader header;
  header.op = static_cast<uint16_t>(Op::Launch);
  header.bytes = kRunBytes;
  header.context = RawClient::kContext;
  return header;
}

struct Attack {
  const char* name;
  std::function<bool(RawClient*)> send;
};

// A header that is no message's of a run.
Attack WithHeader(const char* name, const std::function<void(ipc::MessageHeader*)>& change) {
  return {name, [change](RawClient* client) {
            ipc::MessageHeader header = LaunchHeader();
            change(&header);
            WriteRun(client, 0, header);
            return Repeat(client, 0, kRunBytes);
          }};
}

std::vector<Attack> Attacks() {
  using Header = ipc::MessageHeader*;
  return {
      {"behind the area", [](RawClient* c) { return Repeat(c, limits::kChunkAreaBytes, 64); }},
      {"across its end", [](RawClient* c) { return Repeat(c, limits::kChunkAreaBytes - 8, 64); }},
      {"from the last word", [](RawClient* c) { return Repeat(c, ~7u, 64); }},
      {"of no bytes", [](RawClient* c) { return Repeat(c, 0, 0); }},
      {"of half a word", [](RawClient* c) { return Repeat(c, 0, 60); }},
      {"from half a word", [](RawClient* c) { return Repeat(c, 4, 64); }},
      {"too long", [](RawClient* c) { return Repeat(c, 0, limits::kChunkBytesMax + 8); }},
      {"of 4 GiB", [](RawClient* c) { return Repeat(c, 0, ~7u); }},
      {"patched behind its end",
       [](RawClient* c) {
         return Repeat(c, 0, 64, {16, 1});
       }},
      {"patched far behind",
       [](RawClient* c) {
         return Repeat(c, 0, 64, {~0u, 1});
       }},
      {"without its patches", [](RawClient* c) { return Repeat(c, 0, 64, {}, 1000); }},
      {"with patches untold",
       [](RawClient* c) {
         return Repeat(c, 0, 64, {1, 1}, 0);
       }},
      {"without a body",
       [](RawClient* c) { return c->Send(Op::Ping, Body().Bytes(), ipc::kRepeatsChunk); }},
      WithHeader("of repeats", [](Header h) { h->flags = ipc::kRepeatsChunk; }),
      WithHeader("of questions", [](Header h) { h->flags = ipc::kWantsReply; }),
      WithHeader("of empty messages", [](Header h) { h->bytes = 0; }),
      WithHeader("of less than a header", [](Header h) { h->bytes = sizeof *h - 1; }),
      WithHeader("of a longer message", [](Header h) { h->bytes = kRunBytes + 1; }),
      WithHeader("of an unknown call", [](Header h) { h->op = 0xffff; }),
      WithHeader("of a short body",
                 [](Header h) { h->op = static_cast<uint16_t>(Op::CopyInline); }),
      {"patched into another call",
       [](RawClient* c) {
         WriteRun(c, 0, LaunchHeader());
         return Repeat(c, 0, kRunBytes, {0, ~0u});
       }},
  };
}

}  // namespace

// A session for each attack.
int Chunks(const Arguments&) {
  AwaitGo();
  for (const Attack& attack : Attacks()) {
    const std::unique_ptr<RawClient> client = Enter();
    if (client == nullptr) return 1;
    const bool lost = attack.send(client.get()) && client->AwaitLoss();
    std::printf("%s: %s\n", attack.name, lost ? "lost" : "goes on");
    PrintLoss(*client);
  }
  return 0;
}

// Launches of no function at every place of the area, repeated again and again and to be verified,
// with orders as long as a message can be.
int ChunkFlood(const Arguments&) {
  const std::unique_ptr<RawClient> client = EnterWithMemory(2 * limits::MiB);
  if (client == nullptr) return 1;
  const Body launch = Body()
                          .U32(99)
                          .U32(1)
                          .U32(1)
                          .U32(1)
                          .U32(32)
                          .U32(1)
                          .U32(1)
                          .U32(0)
                          .U32(1)
                          .U8(0)
                          .U32(0)
                          .U8(0)
                          .U32(0);
  ipc::MessageHeader header = LaunchHeader();
  header.bytes = static_cast<uint32_t>(sizeof header + launch.Bytes().size());
  const uint32_t step = static_cast<uint32_t>(ipc::PaddedBytes(header.bytes));
  const uint32_t run = limits::kChunkBytes / step * step;
  for (uint32_t at = 0; at + step <= limits::kChunkAreaBytes; at += step) {
    std::memcpy(client->chunks() + at, &header, sizeof header);
    std::memcpy(client->chunks() + at + sizeof header, launch.Bytes().data(),
                launch.Bytes().size());
  }
  AwaitGo();
  const std::vector<uint32_t> read((run / 4 + 31) / 32, ~0u);
  std::vector<uint32_t> edges;  // the same one
  while (edges.size() < 12'000) edges.insert(edges.end(), {0, 1});
  const auto words = [](const std::vector<uint32_t>& all) { return all.size() * sizeof(uint32_t); };
  uint64_t orders = 0, repeats = 0;
  for (uint32_t round = 0; round < 2; ++round) {
    for (uint32_t place = 0; place + run <= limits::kChunkAreaBytes; place += step) {
      const Body order = Body()
                             .U32(place)
                             .U32(run)
                             .Range(edges.data(), words(edges))
                             .U32(static_cast<uint32_t>(edges.size()))
                             .Range(read.data(), words(read))
                             .U32(static_cast<uint32_t>(read.size()))
                             .U8(0)
                             .U32(0);
      if (place / step % 8 == 0 && client->Post(Op::OrderLaunches, order)) ++orders;
      if (place / step % 64 == 0 && Repeat(client.get(), place, run, {6, 99 + round}, ~0u, round))
        ++repeats;
    }
  }
  std::printf("orders %llu, repeats %llu\n", static_cast<unsigned long long>(orders),
              static_cast<unsigned long long>(repeats));
  PrintReply("ping", client->Call(Op::Ping, Body().U64(7).U8(1)));
  PrintLoss(*client);
  std::printf("done\n");
  AwaitStop();
  return 0;
}

}  // namespace hostile
