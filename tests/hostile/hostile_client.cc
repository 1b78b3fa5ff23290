// A client of lanewayd that breaks one rule:
//
//     hostile_client MODE [ARGUMENT...]
//
// The modes are those of attacks.h. What it sees it prints; tests/hostile/hostile.py tells it when
// to go on and when to stop.
#include <poll.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "ipc/environment.h"
#include "ipc/job.h"
#include "tests/hostile/attacks.h"

namespace hostile {

std::unique_ptr<RawClient> Enter() {
  ipc::Hello hello;
  const char* const ticket = std::getenv(ipc::kJobVariable);
  if (ticket != nullptr) hello.job = ipc::ParseTicketUntrusted(ticket).value_or(ipc::JobTicket());
  absl::StatusOr<std::unique_ptr<RawClient>> client = RawClient::Open(hello);
  if (client.ok()) return std::move(*client);
  std::printf("no session: %s\n", std::string(client.status().message()).c_str());
  return nullptr;
}

std::unique_ptr<RawClient> EnterWithMemory(uint64_t bytes) {
  std::unique_ptr<RawClient> client = Enter();
  if (client == nullptr) return nullptr;
  const Reply reply = client->Call(ipc::Op::ArenaMap, Body().U64(client->base()).U64(bytes));
  PrintReply("map", reply);
  return reply.came && reply.status == 0 ? std::move(client) : nullptr;
}

void AwaitGo() {
  std::printf("ready\n");
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) == 1 && byte != '\n') {
  }
}

bool ToldToStop() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  char byte = 0;
  return poll(&input, 1, 0) == 1 && read(STDIN_FILENO, &byte, 1) <= 0;
}

void AwaitStop() {
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) == 1) {
  }
}

void PrintLoss(const RawClient& client) {
  std::printf("loss %" PRIu32 " %.*s\n", client.loss(), static_cast<int>(client.loss_text().size()),
              client.loss_text().data());
}

void PrintReply(const char* name, const Reply& reply) {
  if (reply.came) {
    std::printf("%s %" PRIu32 "\n", name, reply.status);
  } else {
    std::printf("%s without a reply\n", name);
  }
}

bool Tally::Count(const Reply& reply) {
  reply.came ? ++counts_[reply.status] : ++silent_;
  return reply.came;
}

void Tally::Print(const char* name) const {
  for (const auto& [status, count] : counts_)
    std::printf("%s %" PRIu32 ": %" PRIu64 "\n", name, status, count);
  if (silent_ != 0) std::printf("%s without a reply: %" PRIu64 "\n", name, silent_);
}

namespace {

struct Mode {
  std::string_view name;
  int (*attack)(const Arguments&);
};

constexpr Mode kModes[] = {
    {"keep", Keep},
    {"pin", Pin},
    {"write_value", WriteValue},
    {"peek", Peek},
    {"copy", Copy},
    {"blas", Blas},
    {"truncate", Truncate},
    {"many", Many},
    {"hold", Hold},
    {"wait", Wait},
    {"host_call", HostCall},
    {"spin", Spin},
    {"in_process", InProcess},
    {"job", Job},
    {"chunks", Chunks},
    {"chunk_flood", ChunkFlood},
};

int Run(std::string_view name, const Arguments& arguments) {
  for (const Mode& mode : kModes) {
    if (mode.name == name) return mode.attack(arguments);
  }
  std::fprintf(stderr, "hostile_client: no mode '%s'\n", std::string(name).c_str());
  return 2;
}

}  // namespace
}  // namespace hostile

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (argc < 2) return 2;
  return hostile::Run(argv[1], hostile::Arguments(argv + 2, argv + argc));
}
