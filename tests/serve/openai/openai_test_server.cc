// The API over the scripted model. Lines on standard input change the model; lines on standard
// output say the port and what is asked of the generator.
//
//   openai_test_server [--keys FILE] [--connections N] [--request-ms N] [--idle-s N] [--unread N]
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>

#include "serve/http/server.h"
#include "serve/openai/api.h"
#include "tests/serve/openai/scripted_model.h"

namespace {

using serve::openai::ModelState;

void Tell(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

int64_t NowUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct Arguments {
  serve::http::ServerOptions server;
  serve::http::ApiKeys keys;
};

bool Parse(int count, char** words, Arguments* arguments) {
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = words[i];
    const long number = std::strtol(words[i + 1], nullptr, 10);
    if (name == "--keys") {
      absl::StatusOr<serve::http::ApiKeys> keys = serve::http::ApiKeys::OfFile(words[i + 1]);
      if (!keys.ok()) std::fprintf(stderr, "%s\n", std::string(keys.status().message()).c_str());
      if (!keys.ok()) return false;
      arguments->keys = *std::move(keys);
    } else if (name == "--connections") {
      arguments->server.connections_max = static_cast<size_t>(number);
    } else if (name == "--request-ms") {
      arguments->server.request_us = number * 1000;
    } else if (name == "--idle-s") {
      arguments->server.idle_s = static_cast<unsigned>(number);
    } else if (name == "--unread") {
      arguments->server.unread_bytes_max = static_cast<size_t>(number);
    }
  }
  return true;
}

// False: the input has ended.
bool ReadCommands(serve::openai::ScriptedModel* model) {
  char text[4096];
  const ssize_t bytes = read(STDIN_FILENO, text, sizeof text - 1);
  if (bytes <= 0) return false;
  text[bytes] = '\0';
  for (const char* line = std::strtok(text, "\n"); line != nullptr;
       line = std::strtok(nullptr, "\n")) {
    const std::string command = line;
    if (command == "release") model->Release();
    if (command == "loading") model->SetState(ModelState::kLoading);
    if (command == "ready") model->SetState(ModelState::kReady);
    if (command == "draining") model->SetState(ModelState::kDraining);
    Tell("done " + command);
  }
  return true;
}

void Loop(serve::http::Server* server, serve::openai::ScriptedModel* model) {
  for (;;) {
    const int again_ms = server->Run();
    pollfd entries[] = {{server->descriptor(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    if (poll(entries, 2, model->busy() ? 0 : again_ms) < 0) return;
    if (entries[1].revents != 0 && !ReadCommands(model)) return;
    model->Step();
  }
}

}  // namespace

int main(int count, char** words) {
  Arguments arguments;
  if (!Parse(count, words, &arguments)) return 2;
  serve::openai::ScriptedModel model(&Tell);
  serve::metrics::Registry registry;
  uint64_t seed = 0;
  absl::StatusOr<serve::http::Listener> listener =
      serve::http::Listen("127.0.0.1", 0, !arguments.keys.empty());
  if (!listener.ok()) return 1;
  const uint16_t port = listener->port;
  arguments.server.only_this_machine = arguments.keys.empty();
  serve::openai::Api api(
      {"0.1.0", std::move(arguments.keys), &NowUs, [] { return int64_t{std::time(nullptr)}; },
       [&seed] { return ++seed; }, [](const std::string& line) { Tell("log " + line); }},
      {&model}, &registry);
  auto server = serve::http::Server::Start(*std::move(listener), arguments.server, &api, &NowUs);
  if (!server.ok()) return 1;
  Tell("port " + std::to_string(port));
  Loop(server->get(), &model);
  return 0;
}
