#include "cli/load/client.h"

#include <httplib.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>

#include "absl/strings/str_cat.h"
#include "cli/table.h"
#include "ipc/futex.h"

namespace load {
namespace {

constexpr size_t kRefusalMax = 1 << 16;  // bytes of an error's body
constexpr size_t kBodyShownMax = 200;
constexpr const char* kInterrupted = "interrupted";
constexpr size_t kTokensMax = 1 << 16;

struct Url {
  std::string host;  // with scheme and port; an IPv6 address stands in brackets
  std::string path;  // before /v1
};
std::optional<Url> ParseUrl(const std::string& text) {
  static const std::regex pattern(
      R"((https?://(?:\[[0-9a-fA-F:.]+\]|[^/:\[\]]+)(?::\d{1,5})?)(/.*)?)");
  std::smatch match;
  if (!std::regex_match(text, match, pattern)) return std::nullopt;
  Url url{match[1], match[2]};
  while (url.path.ends_with('/')) url.path.pop_back();
  // The base URL that clients of OpenAI's package are given ends with /v1.
  if (url.path.ends_with("/v1")) url.path.resize(url.path.size() - 3);
  return url;
}

// "429 queue_full: the sentence" of an error in OpenAI's shape, or as much of another text as one
// line holds.
std::string RefusalOf(int status, const std::string& body) {
  const nlohmann::json json = nlohmann::json::parse(body, nullptr, false);
  const auto error = json.is_object() ? json.find("error") : json.end();
  std::string text = absl::StrCat(status);
  if (error == json.end() || !error->is_object()) {
    return absl::StrCat(text, ": ", cli::Printable(body.substr(0, kBodyShownMax)));
  }
  for (const char* const name : {"code", "message"}) {
    const auto value = error->find(name);
    if (value == error->end() || !value->is_string()) continue;
    absl::StrAppend(&text, name == std::string("code") ? " " : ": ",
                    cli::Printable(value->get_ref<const std::string&>()));
  }
  return text;
}

// vLLM's name for the context, which we have, too.
std::optional<ListedModel> ListedOf(const nlohmann::json& model) {
  const auto id = model.is_object() ? model.find("id") : model.end();
  if (id == model.end() || !id->is_string()) return std::nullopt;
  ListedModel listed{id->get<std::string>(), 0};
  const auto context = model.find("max_model_len");
  if (context != model.end() && context->is_number_integer())
    listed.context = std::max(int64_t{0}, context->get<int64_t>());
  return listed;
}

}  // namespace

absl::Status CheckUrl(const std::string& url) {
  if (ParseUrl(url).has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", url, "' is no URL of a server: http://127.0.0.1:8000 is one"));
}

int64_t NowUs() { return ipc::MonotonicNs() / 1000; }

struct Client::Connection {
  Connection(const Server& server, const Url& parsed)
      : http(parsed.host), url(server.url), path(parsed.path) {
    http.set_keep_alive(true);
    http.set_tcp_nodelay(true);
    http.set_read_timeout(server.timeout_s);
    http.set_connection_timeout(10);
    if (!server.key.empty()) headers.emplace("Authorization", absl::StrCat("Bearer ", server.key));
  }

  httplib::Client http;
  const std::string url;
  const std::string path;
  httplib::Headers headers;
  bool kept = false;  // the connection has carried an answer
};

Client::Client(const Server& server)
    : connection_(std::make_unique<Connection>(server, *ParseUrl(server.url))) {}
Client::~Client() = default;

void Client::Interrupt() { connection_->http.stop(); }

absl::StatusOr<ListedModel> Client::FindModel(const std::string& name) {
  Connection& to = *connection_;
  const httplib::Result result = to.http.Get(absl::StrCat(to.path, "/v1/models"), to.headers);
  if (!result) {
    return absl::UnavailableError(
        absl::StrCat("no server answers at ", to.url, ": ", httplib::to_string(result.error())));
  }
  if (result->status != 200) {
    return absl::UnavailableError(
        absl::StrCat(to.url, "/v1/models: ", RefusalOf(result->status, result->body)));
  }
  const nlohmann::json json = nlohmann::json::parse(result->body, nullptr, false);
  const auto data = json.is_object() ? json.find("data") : json.end();
  if (data == json.end() || !data->is_array())
    return absl::NotFoundError(absl::StrCat(to.url, " lists no models"));
  for (const nlohmann::json& model : *data) {
    const std::optional<ListedModel> listed = ListedOf(model);
    if (listed.has_value() && (name.empty() || listed->id == name)) return *listed;
  }
  return absl::NotFoundError(name.empty() ? absl::StrCat(to.url, " lists no models")
                                          : absl::StrCat(to.url, " lists no model ", name));
}

std::vector<int64_t> Client::Tokenize(const std::string& model, const std::string& text) {
  Connection& to = *connection_;
  const nlohmann::json body = {{"model", model}, {"prompt", text}, {"add_special_tokens", false}};
  const httplib::Result result = to.http.Post(
      absl::StrCat(to.path, "/tokenize"), to.headers,
      body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), "application/json");
  if (!result || result->status != 200) return {};
  const nlohmann::json json = nlohmann::json::parse(result->body, nullptr, false);
  const auto tokens = json.is_object() ? json.find("tokens") : json.end();
  if (tokens == json.end() || !tokens->is_array() || tokens->size() > kTokensMax) return {};
  std::vector<int64_t> ids;
  for (const nlohmann::json& token : *tokens) {
    if (!token.is_number_integer()) return {};
    ids.push_back(token.get<int64_t>());
  }
  return ids;
}

Answer Client::Ask(const std::string& route, const std::string& body,
                   const std::atomic<bool>& stop) {
  Connection& to = *connection_;
  Answer answer;
  AnswerStream stream(&answer);
  std::string refusal;
  httplib::Request request;
  request.method = "POST";
  request.path = absl::StrCat(to.path, "/v1/", route);
  request.headers = to.headers;
  request.headers.emplace("Content-Type", "application/json");
  request.body = body;
  request.response_handler = [&answer](const httplib::Response& response) {
    answer.status = response.status;
    return true;
  };
  request.content_receiver = [&](const char* bytes, size_t count, uint64_t, uint64_t) {
    if (stop.load(std::memory_order_relaxed)) return false;
    if (answer.status == 200) return stream.Feed({bytes, count}, NowUs());
    refusal.append(bytes, std::min(count, kRefusalMax - refusal.size()));
    return true;
  };
  answer.sent_us = answer.end_us = NowUs();
  if (stop.load(std::memory_order_relaxed)) {
    answer.failure = kInterrupted;
    return answer;
  }
  httplib::Result result = to.http.send(request);
  // A server may close a connection that is kept just as the next request goes out.
  if (!result && answer.status == 0 && to.kept && !stop.load(std::memory_order_relaxed)) {
    result = to.http.send(request);
  }
  answer.end_us = NowUs();
  to.kept = static_cast<bool>(result);
  if (stop.load(std::memory_order_relaxed)) {
    answer.failure = kInterrupted;
  } else if (!result && answer.ok()) {
    answer.failure = absl::StrCat("no answer: ", httplib::to_string(result.error()));
  } else if (result && answer.status != 200) {
    answer.failure = RefusalOf(answer.status, refusal);
  } else {
    stream.End();
  }
  return answer;
}

}  // namespace load
