// The first page of a session file, mapped by processes that only watch the session: lanewayd, and
// the worker's control thread. The client can write it: what is read here is informative, never
// trusted. Thread safety: the page's words are atomics; the object itself belongs to one thread.
#pragma once

#include <utility>

#include "ipc/session_file.h"

namespace common {

class SessionPageMap {
 public:
  SessionPageMap() = default;
  explicit SessionPageMap(int session_fd);  // does not take over the descriptor
  SessionPageMap(SessionPageMap&& other) noexcept : page_(std::exchange(other.page_, nullptr)) {}
  SessionPageMap& operator=(SessionPageMap&& other) noexcept {
    std::swap(page_, other.page_);
    return *this;
  }
  ~SessionPageMap();

  ipc::SessionPage* get() const { return page_; }  // null when it could not be mapped
  ipc::SessionPage* operator->() const { return page_; }

 private:
  ipc::SessionPage* page_ = nullptr;
};

}  // namespace common
