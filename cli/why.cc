#include "cli/why.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
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

}  // namespace

int Why(const Request& request) {
  const absl::StatusOr<std::string> reply =
      AskDaemon(request, Json{{"command", "why"}, {"id", request.id}}.dump());
  if (!reply.ok()) return Say(1, std::string(reply.status().message()));
  if (request.json) {
    std::printf("%s\n", reply->c_str());
    return 0;
  }
  const Json answer = Json::parse(*reply);
  if (answer["sessions"].empty()) std::puts("no program uses the device");
  for (const Json& session : answer["sessions"]) {
    const std::string job =
        request.id == 0 ? absl::StrCat("job ", session["job"].get<uint64_t>(), ": ") : "";
    std::printf("%s%s\n", job.c_str(), LineOf(session).c_str());
  }
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
