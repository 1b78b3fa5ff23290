// A request of a client and the answer to it (RFC 9110), without the connection.
//
// Names of headers are in lower case in a Request: HTTP compares them without case. All of a
// request was written by a stranger; the server has bounded its sizes and nothing else. Thread
// safety: values.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace serve::http {

inline constexpr const char kJsonType[] = "application/json";
inline constexpr const char kEventStreamType[] = "text/event-stream";

struct Request {
  std::string method;
  std::string path;  // decoded, without the query
  std::map<std::string, std::string, std::less<>> headers;
  std::string body;
  std::string id;  // the client's x-request-id, or one that the server made
};

struct Answer {
  int status = 200;
  std::string body;
  std::string type = kJsonType;
  std::vector<std::pair<std::string, std::string>>
      headers;  // besides the type and the request's id
};

}  // namespace serve::http
