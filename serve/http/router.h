// Which function answers a path and a method. Pure. Thread safety: none.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "serve/http/responder.h"

namespace serve::http {

class Router {
 public:
  // `rest` is what the request's path has in the place of a trailing '*'.
  using Action = std::function<void(const Request& request, std::string_view rest,
                                    const std::shared_ptr<Responder>& responder)>;

  // `path` is one path, or ends with '*', which stands for one or more characters. An exact path is
  // preferred. REQUIRES: no action for the same method and path.
  void Add(std::string method, std::string path, Action action);

  struct Found {
    const Action* action = nullptr;  // null: none
    std::string_view rest;
    std::string allowed;  // without an action: methods that the path has; empty: no such path
  };
  Found Find(std::string_view method, std::string_view path) const;

 private:
  struct Route {
    std::string method;
    std::string path;
    bool is_prefix = false;
    Action action;
  };

  std::vector<Route> routes_;
};

}  // namespace serve::http
