#include "cli/why.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/fronts.h"
#include "cli/models_text.h"
#include "cli/table.h"
#include "cli/terms_text.h"

namespace cli {
namespace {

using Json = nlohmann::json;

// "train (session 3; weight 300) waits for ..."
std::string LineOf(const Json& session) {
  const Json terms = session.value("terms", Json());
  const std::string text = TermsText(terms);
  return absl::StrCat(WithLabel(session["program"].get<std::string>(), terms), " (session ",
                      session["session"].get<uint64_t>(), text.empty() ? "" : "; ", text, ") ",
                      session["why"].get<std::string>());
}

// With members in the order that `json` has.
int PrintJson(const nlohmann::ordered_json& json) {
  std::printf("%s\n", json.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  return 0;
}

// A request to a model, by the id in its answer.
int WhyRequest(const Request& request) {
  for (const Json& answer : AskFronts(DirOf(request), {{"command", "why"}, {"id", request.name}})) {
    const Json requests = answer.value("requests", Json::array());
    if (requests.empty()) continue;
    if (request.json) return PrintJson(requests.front());
    std::fputs(RequestsText(answer).c_str(), stdout);
    return 0;
  }
  return Say(1, absl::StrCat("no model that is served here has an open request '",
                             Printable(request.name), "'; a job is named by its number"));
}

}  // namespace

int Why(const Request& request) {
  uint64_t job = 0;  // 0: all
  if (!request.name.empty() && !absl::SimpleAtoi(request.name, &job)) return WhyRequest(request);
  const absl::StatusOr<std::string> reply =
      AskDaemon(request, Json{{"command", "why"}, {"id", job}}.dump());
  if (!reply.ok()) return Say(1, std::string(reply.status().message()));
  const std::vector<Json> fronts =
      job == 0 ? AskFronts(DirOf(request), {{"command", "why"}}) : std::vector<Json>();
  if (request.json) {
    nlohmann::ordered_json answer = nlohmann::ordered_json::parse(*reply);
    for (const Json& front : fronts) answer["servers"].push_back(nlohmann::ordered_json(front));
    return PrintJson(answer);
  }
  const Json answer = Json::parse(*reply);
  if (answer["sessions"].empty()) std::puts("no program uses the device");
  for (const Json& session : answer["sessions"]) {
    const std::string which =
        job == 0 ? absl::StrCat("job ", session["job"].get<uint64_t>(), ": ") : "";
    std::printf("%s%s\n", which.c_str(), LineOf(session).c_str());
  }
  for (const Json& front : fronts) std::fputs(RequestsText(front).c_str(), stdout);
  return 0;
}

int Policy(const Request& request) {
  Json ask = {{"command", "policy"}};
  if (!request.name.empty()) ask["text"] = request.name;
  const absl::StatusOr<std::string> reply = AskDaemon(request, ask.dump());
  if (!reply.ok()) return Say(1, std::string(reply.status().message()));
  const Json answer = Json::parse(*reply);
  std::printf("%s\n", answer["policy"].get<std::string>().c_str());
  return 0;
}

}  // namespace cli
