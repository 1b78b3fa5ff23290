// A client without CUDA: makes sessions by the hello, and does as it is told on standard input, so
// that tests can hold and kill it. Prints a line per event.
//
//     fake_client SESSIONS [ring|zmq]
//     -> "open ID WORKER" or "refused CODE SENTENCE" per session; then "ready"
//     "ping"  -> "pong" per session, after a round trip
//     "loss"  -> "loss CODE TEXT" of each session, waiting up to 30 s for it
//     end of input: exits with 0
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "ipc/control.h"
#include "ipc/futex.h"
#include "ipc/hello.h"
#include "ipc/runtime_dir.h"
#include "ipc/session_file.h"
#include "ipc/socket.h"
#include "ipc/zmq_channel.h"

namespace {

constexpr int64_t kTimeoutUs = 30'000'000;

struct Client {
  ipc::UniqueFd socket;
  std::unique_ptr<ipc::SessionFile> file;
  ipc::Channel channel;
};

bool Open(ipc::Transport transport, Client* client) {
  absl::StatusOr<ipc::UniqueFd> socket = ipc::ConnectTo(ipc::HelloSocketPath(ipc::RuntimeDir()));
  if (!socket.ok()) {
    std::printf("refused 805 %s\n", std::string(socket.status().message()).c_str());
    return false;
  }
  ipc::Hello hello;
  hello.tables = ipc::OwnTables();
  hello.transport = transport;
  if (const char* const job = std::getenv("LANEWAY_JOB"))
    hello.job = ipc::ParseTicketUntrusted(job).value_or(ipc::JobTicket());
  ipc::control::SetText(hello.program, "fake_client");
  ipc::control::SetText(hello.version, "test");
  (void)ipc::SendPacket(socket->get(), {reinterpret_cast<const std::byte*>(&hello), sizeof hello});
  absl::StatusOr<ipc::Packet> packet;
  ipc::Welcome welcome;
  do {
    packet = ipc::ReceivePacket(socket->get(), kTimeoutUs);
    if (!packet.ok() || packet->bytes.size() != sizeof welcome) {
      std::printf("refused 806 no welcome\n");
      return false;
    }
    std::memcpy(&welcome, packet->bytes.data(), sizeof welcome);
  } while (welcome.queued != 0);
  if (welcome.result != 0 || packet->fds.size() != 2) {
    std::printf("refused %u %s\n", welcome.result, welcome.sentence);
    return false;
  }
  absl::StatusOr<ipc::SessionFile> file = ipc::SessionFile::Map(packet->fds[0].get());
  if (!file.ok()) return false;
  client->socket = std::move(*socket);
  client->file = std::make_unique<ipc::SessionFile>(std::move(*file));
  if (transport == ipc::Transport::kZmq) {
    absl::StatusOr<ipc::Channel> channel =
        ipc::ConnectZmqChannel(welcome.zmq_endpoint, client->file->page()->call_token);
    if (!channel.ok()) return false;
    client->channel = std::move(*channel);
  } else {
    client->channel = client->file->ClientChannel();
  }
  std::printf("open %llu %u\n", static_cast<unsigned long long>(welcome.session_id),
              welcome.worker_pid);
  return true;
}

void Ping(Client* client) {
  ipc::MessageHeader header;
  header.bytes = sizeof header;
  header.flags = ipc::kWantsReply;
  header.request = 7;
  const std::span<std::byte> room = client->channel.sender->Reserve(sizeof header, kTimeoutUs);
  if (room.empty()) return;
  std::memcpy(room.data(), &header, sizeof header);
  client->channel.sender->Commit(sizeof header);
  const std::span<const std::byte> reply = client->channel.receiver->NextUntrusted(20, kTimeoutUs);
  std::puts(reply.size() == sizeof header ? "pong" : "no reply");
}

void WaitForLoss(Client* client) {
  ipc::SessionPage* const page = client->file->page();
  const int64_t deadline = ipc::MonotonicNs() + kTimeoutUs * 1000;
  while (page->loss.load() == 0 && ipc::MonotonicNs() < deadline) {
    const uint32_t ticket = page->client_doorbell.load();
    if (page->loss.load() == 0) ipc::FutexWait(&page->client_doorbell, ticket, 100'000);
  }
  std::printf("loss %u %s\n", page->loss.load(), page->loss.load() == 0 ? "" : page->loss_text);
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const int count = argc > 1 ? static_cast<int>(std::strtol(argv[1], nullptr, 10)) : 1;
  const bool zmq = argc > 2 && std::strcmp(argv[2], "zmq") == 0;
  std::vector<Client> clients;
  for (int i = 0; i < count; ++i) {
    Client client;
    if (Open(zmq ? ipc::Transport::kZmq : ipc::Transport::kRing, &client)) {
      clients.push_back(std::move(client));
    }
  }
  std::puts("ready");
  for (std::string line; std::getline(std::cin, line);) {
    for (Client& client : clients) {
      if (line == "ping") Ping(&client);
      if (line == "loss") WaitForLoss(&client);
    }
  }
  std::_Exit(0);  // as a program that calls no destructor of ours
}
