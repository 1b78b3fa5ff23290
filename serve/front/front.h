// The front of laneway-serve: models, the API, the HTTP server, and the loop that all of them run
// in. On SIGTERM or SIGINT the front refuses new requests, and ends when those that it has accepted
// are answered. A second signal ends it at once.
//
// Thread safety: one thread, main().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "serve/front/front_model.h"
#include "serve/front/front_report.h"
#include "serve/front/model_metrics.h"
#include "serve/front/question_socket.h"
#include "serve/front/recent_rate.h"
#include "serve/http/server.h"
#include "serve/llm/serve_options.h"
#include "serve/loop/descriptor.h"
#include "serve/loop/poll_loop.h"
#include "serve/metrics/registry.h"
#include "serve/openai/api.h"

namespace serve::front {

class Front {
 public:
  Front() = default;
  Front(const Front&) = delete;

  // Opens everything but the engines. Fails with a sentence.
  absl::Status Open(const llm::ServeOptions& options, const std::vector<std::string>& paths);
  // Serves until a signal ends it. REQUIRES: Open succeeded.
  void Run();

 private:
  absl::Status OpenModels(const llm::ServeOptions& options, const std::vector<std::string>& paths);
  absl::Status OpenServer(const llm::ServeOptions& options);
  absl::Status OpenQuestionSocket();
  absl::Status WatchSignals();
  void RunServer();
  ReportInput Report() const;
  void Drain();
  void EndWhenAnswered();

  PollLoop loop_;
  Descriptor signals_;
  metrics::Registry registry_;
  std::vector<std::unique_ptr<FrontModel>> models_;
  std::vector<ModelMetrics> metrics_;
  std::vector<RecentRate> rates_;  // of generated tokens, by model
  std::unique_ptr<openai::Api> api_;
  std::unique_ptr<http::Server> server_;
  std::unique_ptr<QuestionSocket> questions_;
  EventLoop::TimerId server_timer_ = 0;
  std::string address_;
  size_t undrained_ = 0;
  bool draining_ = false;
};

}  // namespace serve::front
