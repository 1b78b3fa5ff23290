// A client of a server that speaks OpenAI's API, over HTTP or HTTPS. Thread safety: a client
// belongs to one thread, but for Interrupt().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/load/answer_stream.h"

namespace load {

// Where the server is. `url` is scheme, host and port, and where the API does not begin at /v1, a
// path before that.
struct Server {
  std::string url;
  std::string key;          // empty: none
  int64_t timeout_s = 600;  // without a byte
};
// InvalidArgument, one sentence: no such URL.
absl::Status CheckUrl(const std::string& url);

// Microseconds of the monotonic clock.
int64_t NowUs();

struct ListedModel {
  std::string id;
  int64_t context = 0;  // tokens of a prompt and its answer; 0: the server does not say
};

class Client {
 public:
  // REQUIRES: CheckUrl(server.url) is ok.
  explicit Client(const Server& server);
  ~Client();

  // The model of this name, or, where it is empty, the first that the server lists. Unavailable,
  // NotFound: one sentence.
  absl::StatusOr<ListedModel> FindModel(const std::string& name);
  // The text's tokens; empty where the server has no /tokenize.
  std::vector<int64_t> Tokenize(const std::string& model, const std::string& text);
  // Asks /v1/`route` and reads the stream to its end, or until `*stop`.
  Answer Ask(const std::string& route, const std::string& body, const std::atomic<bool>& stop);
  // Ends an Ask() whose `*stop` is true, and that waits for the server. Any thread may call it.
  void Interrupt();

 private:
  struct Connection;
  const std::unique_ptr<Connection> connection_;
};

}  // namespace load
