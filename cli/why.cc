#include "cli/why.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace cli {
namespace {

using Json = nlohmann::json;

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
  for (const Json& session : answer["sessions"]) {
    std::printf("%s (session %llu) %s\n", session["program"].get<std::string>().c_str(),
                static_cast<unsigned long long>(session["session"].get<uint64_t>()),
                session["why"].get<std::string>().c_str());
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
