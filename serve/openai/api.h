// The routes of OpenAI's API, and those that clients of vLLM expect beside them.
//
// Thread safety: the front's event loop. REQUIRES: models, registry and what the terms call outlive
// the API; the API outlives the server's requests.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "serve/http/api_keys.h"
#include "serve/http/responder.h"
#include "serve/http/router.h"
#include "serve/metrics/registry.h"
#include "serve/openai/completion.h"

namespace serve::openai {

struct ApiTerms {
  std::string version;
  http::ApiKeys keys;
  std::function<int64_t()> now_us;  // monotonic
  std::function<int64_t()> seconds_since_1970;
  std::function<uint64_t()> random;
  std::function<void(const std::string&)> log;
  metrics::LatencyGoals goals;
  std::function<void()> before_metrics;  // brings series up to date; may be empty
};

class Api : public http::Handler {
 public:
  Api(ApiTerms terms, std::vector<ServedModel*> models, metrics::Registry* registry);
  ~Api() override;

  void OnRequest(http::Request request, std::shared_ptr<http::Responder> responder) override;
  http::Answer Refusal(int status, std::string_view sentence) override;
  size_t open_completions() const { return completions_.size(); }
  // The calls whose answers are not whole, the oldest first. The pointers are valid until a request
  // arrives or ends.
  std::vector<const Completion*> OpenCompletions() const;
  // Tokens of all answers of the model. REQUIRES: `model` is one of those that are served.
  int64_t GeneratedTokens(const ServedModel& model) const;

 private:
  using ResponderPointer = std::shared_ptr<http::Responder>;

  struct Served {
    ServedModel* model;
    CompletionMetrics metrics;
  };

  void AddRoutes();
  void Complete(const http::Request& request, Route route, const ResponderPointer& responder);
  void Tokenize(const http::Request& request, const ResponderPointer& responder);
  void Detokenize(const http::Request& request, const ResponderPointer& responder);
  void ListModels(const ResponderPointer& responder) const;
  void ShowModel(std::string_view id, const ResponderPointer& responder) const;
  void ShowHealth(const ResponderPointer& responder) const;
  bool IsCalled(const ServedModel& model, const std::string& name) const;
  std::variant<Served*, Error> FindModel(const std::string& id);
  void LogUnknown(const std::vector<std::string>& names);

  const ApiTerms terms_;
  std::vector<Served> models_;
  metrics::Registry* const registry_;
  http::Router router_;
  std::set<std::string> unknown_logged_;
  uint64_t last_completion_ = 0;
  std::map<uint64_t, std::shared_ptr<Completion>> completions_;
};

}  // namespace serve::openai
