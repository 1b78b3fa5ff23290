#include "daemon/control/command.h"

#include <nlohmann/json.hpp>

#include "ipc/job_options.h"

namespace control {
namespace {

using Json = nlohmann::json;

bool TakeNumber(const Json& request, const char* name, uint64_t* number) {
  const Json::const_iterator found = request.find(name);
  if (found == request.end()) return true;
  if (!found->is_number_unsigned()) return false;
  *number = found->get<uint64_t>();
  return true;
}

bool TakeText(const Json& request, const char* name, std::string* text) {
  const Json::const_iterator found = request.find(name);
  if (found == request.end()) return true;
  if (!found->is_string()) return false;
  *text = found->get<std::string>();
  return true;
}

}  // namespace

bool ParseCommandUntrusted(const std::string& text, Command* command) {
  const Json request = Json::parse(text, nullptr, false);
  if (!request.is_object() || request.count("command") == 0) return false;
  const Json::const_iterator terms = request.find("terms");
  if (terms != request.end() && !ipc::ReadTermsUntrusted(*terms, &command->scheduling))
    return false;
  const Json::const_iterator force = request.find("force");
  if (force != request.end() && !force->is_boolean()) return false;
  command->force = force != request.end() && force->get<bool>();
  return TakeText(request, "command", &command->name) &&
         TakeText(request, "text", &command->text) &&
         TakeText(request, "ticket", &command->ticket) && TakeNumber(request, "id", &command->id) &&
         TakeNumber(request, "bytes", &command->bytes) &&
         TakeNumber(request, "value", &command->value) &&
         TakeNumber(request, "after", &command->after) &&
         TakeNumber(request, "pid", &command->pid) && TakeNumber(request, "code", &command->code);
}

}  // namespace control
