#include "serve/openai/api.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace serve::openai {
namespace {

constexpr size_t kUnknownNamesMax = 256;  // so that strangers fill neither log nor memory
constexpr int64_t kLoadingRetryS = 5;

// Health and version are for those who watch the server, who need no key.
bool NeedsKey(std::string_view path) { return path != "/health" && path != "/version"; }

// The API's own errors say why; the type says what kind.
const char* CodeOf(int status) {
  if (status == 403) return "forbidden";
  if (status == 404) return "not_found";
  if (status == 405) return "method_not_allowed";
  return status == 413 ? "body_too_large" : "unavailable";
}

// vLLM's clients read max_model_len and root; the rest is OpenAI's.
OrderedJson ModelJson(const ServedModel& model) {
  return {{"id", model.id()},
          {"object", "model"},
          {"created", model.created()},
          {"owned_by", "laneway"},
          {"root", model.root()},
          {"parent", nullptr},
          {"max_model_len", model.context()}};
}

}  // namespace

Api::Api(ApiTerms terms, std::vector<ServedModel*> models, metrics::Registry* registry)
    : terms_(std::move(terms)), registry_(registry) {
  for (ServedModel* const model : models)
    models_.push_back({model, CompletionMetrics(registry, model->id(), terms_.goals)});
  AddRoutes();
}

Api::~Api() = default;

void Api::AddRoutes() {
  using http::Request;
  const auto post = [this](const char* path, auto action) {
    router_.Add("POST", path,
                [action](const Request& request, std::string_view, const ResponderPointer& to) {
                  action(request, to);
                });
  };
  const auto get = [this](const char* path, auto action) {
    router_.Add("GET", path,
                [action](const Request&, std::string_view rest, const ResponderPointer& to) {
                  action(rest, to);
                });
  };
  using View = std::string_view;
  post("/v1/completions", [this](const Request& request, const ResponderPointer& to) {
    Complete(request, kCompletions, to);
  });
  post("/v1/chat/completions", [this](const Request& request, const ResponderPointer& to) {
    Complete(request, kChat, to);
  });
  post("/tokenize",
       [this](const Request& request, const ResponderPointer& to) { Tokenize(request, to); });
  post("/detokenize",
       [this](const Request& request, const ResponderPointer& to) { Detokenize(request, to); });
  get("/v1/models", [this](View, const ResponderPointer& to) { ListModels(to); });
  get("/v1/models/*", [this](View id, const ResponderPointer& to) { ShowModel(id, to); });
  get("/health", [this](View, const ResponderPointer& to) { ShowHealth(to); });
  get("/version", [this](View, const ResponderPointer& to) {
    to->Reply({200, Dump({{"version", terms_.version}})});
  });
  get("/metrics", [this](View, const ResponderPointer& to) {
    if (terms_.before_metrics) terms_.before_metrics();
    to->Reply({200, registry_->Text(), "text/plain; version=0.0.4; charset=utf-8"});
  });
}

// The key comes first: a client without one learns nothing of paths.
void Api::OnRequest(http::Request request, std::shared_ptr<http::Responder> responder) {
  const auto authorization = request.headers.find("authorization");
  if (NeedsKey(request.path) &&
      !terms_.keys.Admits(authorization == request.headers.end() ? "" : authorization->second))
    return responder->Reply(AnswerOf(
        {401, "give a valid key in the header Authorization: Bearer KEY", "", "invalid_api_key"}));
  const http::Router::Found found = router_.Find(request.method, request.path);
  if (found.action != nullptr) return (*found.action)(request, found.rest, responder);
  if (found.allowed.empty())
    return responder->Reply(Refusal(404, "there is no such path; the API begins at /v1"));
  http::Answer answer = Refusal(405, absl::StrCat("this path takes ", found.allowed));
  answer.headers.emplace_back("allow", found.allowed);
  responder->Reply(std::move(answer));
}

http::Answer Api::Refusal(int status, std::string_view sentence) {
  return AnswerOf({status, std::string(sentence), "", CodeOf(status)});
}

// --- generation ----------------------------------------------------------------------------------

// The checks come in the order in which a client can mend their errors: body, model, prompt. The
// completion stays in the map until the generator and the client are done with it.
void Api::Complete(const http::Request& request, Route route, const ResponderPointer& responder) {
  std::variant<Parsed, Error> parsed = ParseBodyUntrusted(request.body, route);
  if (const Error* error = std::get_if<Error>(&parsed)) return responder->Reply(AnswerOf(*error));
  Fields& fields = std::get<Parsed>(parsed).fields;
  LogUnknown(std::get<Parsed>(parsed).unknown);
  const std::variant<Served*, Error> found = FindModel(fields.model);
  if (const Error* error = std::get_if<Error>(&found)) return responder->Reply(AnswerOf(*error));
  Served* const served = std::get<Served*>(found);
  std::variant<Prepared, Error> prepared = Prepare(fields, route, *served->model, terms_.random());
  if (const Error* error = std::get_if<Error>(&prepared)) return responder->Reply(AnswerOf(*error));
  const uint64_t number = ++last_completion_;
  CompletionTerms terms;
  terms.fields = std::move(fields);
  terms.route = route;
  terms.id = absl::StrCat(route == kChat ? "chatcmpl-" : "cmpl-", request.id);
  terms.created = terms_.seconds_since_1970();
  terms.now_us = terms_.now_us;
  terms.ended = [this, number] { completions_.erase(number); };
  const auto completion =
      std::make_shared<Completion>(std::move(terms), served->model, &served->metrics, responder);
  completions_[number] = completion;
  responder->OnGone([this, number] {
    const auto open = completions_.find(number);
    if (open != completions_.end()) open->second->Cancel();
  });
  completion->Start(std::get<Prepared>(std::move(prepared)));
}

// Numbers ascend, so the map begins with the oldest.
std::vector<const Completion*> Api::OpenCompletions() const {
  std::vector<const Completion*> open;
  for (const auto& [number, completion] : completions_) open.push_back(completion.get());
  return open;
}

int64_t Api::GeneratedTokens(const ServedModel& model) const {
  for (const Served& served : models_) {
    if (served.model == &model)
      return static_cast<int64_t>(served.metrics.generation_tokens->value());
  }
  return 0;
}

void Api::LogUnknown(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (unknown_logged_.size() < kUnknownNamesMax && unknown_logged_.insert(name).second)
      terms_.log(absl::StrCat("a request has the field '", name,
                              "', which means nothing here; it is ignored from now on"));
  }
}

// A model that is known and not ready is another error than an unknown one.
// `vllm bench serve` names a model by its root where it asks for tokens. Models of one tokenizer
// have one root, which then names neither.
bool Api::IsCalled(const ServedModel& model, const std::string& name) const {
  if (model.id() == name) return true;
  if (name.empty()) return models_.size() == 1;
  return model.root() == name &&
         std::count_if(models_.begin(), models_.end(),
                       [&name](const Served& served) { return served.model->root() == name; }) == 1;
}

std::variant<Api::Served*, Error> Api::FindModel(const std::string& id) {
  for (Served& served : models_) {
    if (!IsCalled(*served.model, id)) continue;
    switch (served.model->state()) {
      case ModelState::kReady:
        return &served;
      case ModelState::kLoading:
        return Error{503, "the model is loading; try again later", "", "loading", kLoadingRetryS};
      case ModelState::kDraining:
        return Error{503, "the server is ending and takes no more requests", "", "draining",
                     kLoadingRetryS};
    }
  }
  if (id.empty()) return BadField("model", "several models are served; name one of /v1/models");
  return UnknownModel(id);
}

// --- text and tokens -----------------------------------------------------------------------------

void Api::Tokenize(const http::Request& request, const ResponderPointer& responder) {
  const std::variant<Parsed, Error> parsed = ParseBodyUntrusted(request.body, kTokenize);
  if (const Error* error = std::get_if<Error>(&parsed)) return responder->Reply(AnswerOf(*error));
  const Fields& fields = std::get<Parsed>(parsed).fields;
  const std::variant<Served*, Error> found = FindModel(fields.model);
  if (const Error* error = std::get_if<Error>(&found)) return responder->Reply(AnswerOf(*error));
  const ServedModel& model = *std::get<Served*>(found)->model;
  const std::variant<std::vector<int32_t>, Error> tokens =
      fields.prompts.empty() ? TokensOf(fields.messages, fields.add_generation_prompt, model)
                             : TokensOf(fields.prompts.front(), fields.add_special_tokens, model);
  if (const Error* error = std::get_if<Error>(&tokens)) return responder->Reply(AnswerOf(*error));
  const auto& list = std::get<std::vector<int32_t>>(tokens);
  OrderedJson json = {{"count", list.size()}, {"max_model_len", model.context()}, {"tokens", list}};
  if (fields.return_token_strs) {
    json["token_strs"] = OrderedJson::array();
    for (const int32_t token : list) json["token_strs"].push_back(model.Decode({token}));
  }
  responder->Reply({200, Dump(json)});
}

// Tokens are checked as those of a prompt are; the error names this route's field.
void Api::Detokenize(const http::Request& request, const ResponderPointer& responder) {
  const std::variant<Parsed, Error> parsed = ParseBodyUntrusted(request.body, kDetokenize);
  if (const Error* error = std::get_if<Error>(&parsed)) return responder->Reply(AnswerOf(*error));
  const Fields& fields = std::get<Parsed>(parsed).fields;
  const std::variant<Served*, Error> found = FindModel(fields.model);
  if (const Error* error = std::get_if<Error>(&found)) return responder->Reply(AnswerOf(*error));
  const ServedModel& model = *std::get<Served*>(found)->model;
  const auto tokens = TokensOf(Prompt(fields.tokens), false, model);
  if (std::holds_alternative<Error>(tokens))
    return responder->Reply(
        AnswerOf(BadField("tokens", "tokens has a token beyond the vocabulary")));
  responder->Reply({200, Dump({{"prompt", model.DecodeText(fields.tokens)}})});
}

// --- what there is -------------------------------------------------------------------------------

void Api::ListModels(const ResponderPointer& responder) const {
  OrderedJson list = OrderedJson::array();
  for (const Served& served : models_) list.push_back(ModelJson(*served.model));
  responder->Reply({200, Dump({{"object", "list"}, {"data", std::move(list)}})});
}

void Api::ShowModel(std::string_view id, const ResponderPointer& responder) const {
  for (const Served& served : models_) {
    if (served.model->id() == id) return responder->Reply({200, Dump(ModelJson(*served.model))});
  }
  responder->Reply(AnswerOf(UnknownModel(id)));
}

void Api::ShowHealth(const ResponderPointer& responder) const {
  for (const Served& served : models_) {
    if (served.model->state() == ModelState::kLoading)
      return responder->Reply(AnswerOf({503, "a model is loading", "", "loading", kLoadingRetryS}));
    if (served.model->state() == ModelState::kDraining)
      return responder->Reply(AnswerOf({503, "the server is ending", "", "draining"}));
  }
  responder->Reply({200, Dump({{"status", "ok"}})});
}

}  // namespace serve::openai
