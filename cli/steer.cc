#include "cli/steer.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "ipc/bytes.h"

namespace cli {

int Steer(const Request& request) {
  nlohmann::json ask = {{"command", request.idle ? "evict-idle" : request.command},
                        {"id", request.id}};
  if (request.command == "limit") {
    const std::optional<uint64_t> bytes =
        request.name == "none" ? uint64_t{0} : ipc::ParseBytes(request.name);
    if (!bytes.has_value()) {
      return Say(2,
                 absl::StrCat("'", request.name, "' is no amount of memory; say 6GiB, 512MiB, or ",
                              "none for no limit"));
    }
    ask["bytes"] = *bytes;
  }
  if (request.command == "share" || request.command == "priority") ask["value"] = request.count;
  const absl::StatusOr<std::string> reply = AskDaemon(request, ask.dump());
  return reply.ok() ? 0 : Say(1, std::string(reply.status().message()));
}

}  // namespace cli
