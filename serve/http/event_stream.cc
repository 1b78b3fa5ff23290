#include "serve/http/event_stream.h"

namespace serve::http {

std::string EventOf(std::string_view data) {
  std::string event = "data: ";
  for (size_t i = 0; i < data.size(); ++i) {
    if (data[i] != '\r' && data[i] != '\n') {
      event += data[i];
      continue;
    }
    if (data[i] == '\r' && i + 1 < data.size() && data[i + 1] == '\n') ++i;
    event += "\ndata: ";
  }
  return event + "\n\n";
}

}  // namespace serve::http
