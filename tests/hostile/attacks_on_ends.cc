// Streams that wait for ever, a session that cannot be told of its loss, and hellos that lie.
#include <sys/wait.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "ipc/control.h"
#include "ipc/futex.h"
#include "ipc/job.h"
#include "ipc/runtime_dir.h"
#include "ipc/socket.h"
#include "tests/hostile/attacks.h"

namespace hostile {
namespace {

using ipc::Op;
using ipc::limits::MiB;

constexpr uint64_t kHeld = 64 * MiB;

// The legacy stream waits for a word that no call writes.
std::unique_ptr<RawClient> HoldStream() {
  std::unique_ptr<RawClient> client = EnterWithMemory(kHeld);
  if (client == nullptr) return nullptr;
  const Body wait = Body().U32(1).U64(client->base()).U32(1).U32(0);
  PrintReply("wait", client->Call(Op::cuStreamWaitValue32_v2, wait));
  return client;
}

}  // namespace

int Hold(const Arguments&) {
  const std::unique_ptr<RawClient> client = HoldStream();
  if (client == nullptr) return 1;
  AwaitGo();
  PrintReply("ping", client->Call(Op::Ping, Body().U64(7).U8(1)));
  PrintLoss(*client);
  return 0;
}

int Wait(const Arguments&) { return HoldStream() == nullptr ? 1 : 0; }

// The stream waits for the program's acknowledgement. The program ends, and a process that has the
// session's file still takes back whatever acknowledges for it.
int HostCall(const Arguments& arguments) {
  if (arguments.size() != 1) return 2;
  const uint64_t ticket = std::strtoull(arguments[0].c_str(), nullptr, 10);
  const std::unique_ptr<RawClient> client = EnterWithMemory(kHeld);
  if (client == nullptr) return 1;
  absl::StatusOr<ipc::SessionFile> file = ipc::SessionFile::Map(client->session_fd());
  int begun[2];
  if (!file.ok() || pipe(begun) != 0) return 1;
  PrintReply("call", client->Call(Op::HostCall, Body().U32(1).U64(ticket).Mark(1)));
  const pid_t helper = fork();
  if (helper == 0) {
    setsid();
    bool told = false;
    while (!ToldToStop()) {
      for (int i = 0; i < 1000; ++i) file->completions()->acknowledged[0].store(0);
      if (!told) told = write(begun[1], "x", 1) == 1;
    }
    std::printf("helper ends\n");
    _exit(0);
  }
  char byte = 0;
  return read(begun[0], &byte, 1) == 1 ? 0 : 1;
}

// The page says that the session's loss is being written already; then a length that no message
// has.
int Spin(const Arguments&) {
  const std::unique_ptr<RawClient> client = EnterWithMemory(kHeld);
  if (client == nullptr) return 1;
  AwaitGo();
  client->page()->loss_text_ready.store(1);
  ipc::MessageHeader header;
  header.bytes = 3;
  const std::span<std::byte> room = client->sender()->Reserve(64, RawClient::kPatienceUs);
  if (room.empty()) return 1;
  std::memcpy(room.data(), &header, sizeof header);
  client->sender()->Commit(room.size());
  std::printf("sent\n");
  AwaitStop();
  PrintLoss(*client);
  return 0;
}

// --- hellos --------------------------------------------------------------------------------------

namespace {

// Says of another program's session what a program with a context of its own may say of its own
// session alone, then what only workers say. lanewayd may close the connection after the first.
void SpeakFor(int socket, uint64_t session) {
  namespace wire = ipc::control;
  const wire::ProgramToDaemon lies[] = {
      wire::GateReport{session, wire::GateEvent::kStalled},
      wire::MemoryNeeded{session, 192 * ipc::limits::GiB, 0},
      wire::MemoryFreed{session, 192 * ipc::limits::GiB},
      wire::Switched{1, session, 0, 0},
  };
  int sent = 0;
  for (const wire::ProgramToDaemon& lie : lies)
    sent += wire::Send<wire::ProgramToDaemon>(socket, lie).ok();
  sent += wire::Send<wire::WorkerToDaemon>(socket, wire::SessionEnded{session}).ok();
  std::printf("lies %d\n", sent);
  (void)wire::Send<wire::WorkerToDaemon>(
      socket, wire::Poisoned{session, CUDA_ERROR_ILLEGAL_ADDRESS, "a lie"});
}

}  // namespace

int InProcess(const Arguments& arguments) {
  if (arguments.size() != 1) return 2;
  ipc::Hello hello;
  hello.tables = ipc::OwnTables();
  hello.mode = ipc::Mode::kInProcess;
  hello.session_id = std::strtoull(arguments[0].c_str(), nullptr, 10);
  hello.held_bytes = ~uint64_t{0};
  ipc::control::SetText(hello.program, "hostile");
  const absl::StatusOr<ipc::UniqueFd> socket =
      ipc::ConnectTo(ipc::HelloSocketPath(ipc::RuntimeDir()));
  if (!socket.ok() || !ipc::SendPacket(socket->get(), std::as_bytes(std::span(&hello, 1))).ok())
    return 1;
  const absl::StatusOr<ipc::Packet> packet =
      ipc::ReceivePacket(socket->get(), RawClient::kPatienceUs);
  ipc::Welcome welcome;
  if (!packet.ok() || packet->bytes.size() != sizeof welcome) return 1;
  std::memcpy(&welcome, packet->bytes.data(), sizeof welcome);
  std::printf("welcome %" PRIu32 ", session %" PRIu64 "\n", welcome.result, welcome.session_id);
  AwaitGo();
  SpeakFor(socket->get(), hello.session_id);
  AwaitStop();
  return 0;
}

int Job(const Arguments& arguments) {
  if (arguments.size() != 2) return 2;
  ipc::Hello hello;
  if (arguments[0] == "forged") {
    const std::optional<ipc::JobTicket> ticket = ipc::ParseTicketUntrusted(arguments[1]);
    if (!ticket.has_value()) return 1;
    hello.job = *ticket;
  } else {
    hello.job.terms.number = std::strtoull(arguments[1].c_str(), nullptr, 10);
    hello.job.terms.id = 1;
  }
  hello.job.terms.memory_limit_bytes = 1;
  const absl::StatusOr<std::unique_ptr<RawClient>> client = RawClient::Open(hello);
  if (!client.ok()) return 1;
  std::printf("session %" PRIu64 "\n", (*client)->session_id());
  AwaitGo();
  PrintReply("map", (*client)->Call(Op::ArenaMap, Body().U64((*client)->base()).U64(2 * MiB)));
  PrintLoss(**client);
  return 0;
}

}  // namespace hostile
