#include "serve/http/router.h"

#include <cassert>
#include <utility>

namespace serve::http {

void Router::Add(std::string method, std::string path, Action action) {
  const bool is_prefix = !path.empty() && path.back() == '*';
  if (is_prefix) path.pop_back();
  for (const Route& route : routes_)
    assert(route.method != method || route.path != path || route.is_prefix != is_prefix);
  routes_.push_back({std::move(method), std::move(path), is_prefix, std::move(action)});
}

Router::Found Router::Find(std::string_view method, std::string_view path) const {
  Found found;
  bool found_is_prefix = true;
  for (const Route& route : routes_) {
    const bool fits = route.is_prefix
                          ? path.size() > route.path.size() && path.starts_with(route.path)
                          : path == route.path;
    if (!fits) continue;
    if (route.method != method) {
      if (found.allowed.find(route.method) == std::string::npos)
        found.allowed += (found.allowed.empty() ? "" : ", ") + route.method;
    } else if (found_is_prefix) {
      found.action = &route.action;
      found.rest = route.is_prefix ? path.substr(route.path.size()) : std::string_view();
      found_is_prefix = route.is_prefix;
    }
  }
  return found;
}

}  // namespace serve::http
