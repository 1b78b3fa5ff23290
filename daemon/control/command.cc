#include "daemon/control/command.h"

#include <nlohmann/json.hpp>

#include "ipc/job_options.h"

namespace control {
namespace {

using RequestJson = nlohmann::json;

bool TakeNumber(const RequestJson& request, const char* name, uint64_t* number) {
  const RequestJson::const_iterator found = request.find(name);
  if (found == request.end()) return true;
  if (!found->is_number_unsigned()) return false;
  *number = found->get<uint64_t>();
  return true;
}

bool TakeText(const RequestJson& request, const char* name, std::string* text) {
  const RequestJson::const_iterator found = request.find(name);
  if (found == request.end()) return true;
  if (!found->is_string()) return false;
  *text = found->get<std::string>();
  return true;
}

}  // namespace

bool ParseCommandUntrusted(const std::string& text, Command* command) {
  const RequestJson request = RequestJson::parse(text, nullptr, false);
  if (!request.is_object() || request.count("command") == 0) return false;
  const RequestJson::const_iterator terms = request.find("terms");
  if (terms != request.end() && !ipc::ReadTermsUntrusted(*terms, &command->scheduling))
    return false;
  const RequestJson::const_iterator force = request.find("force");
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
