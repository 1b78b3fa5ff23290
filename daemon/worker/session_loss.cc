// Whether a session is lost: the worker's own word. The page's words only tell the client, who can
// write them, too.
#include "daemon/worker/session_impl.h"

namespace worker {

void SessionImpl::Lose(const char* text, CUresult code) {
  lost_.store(true, std::memory_order_relaxed);
  ipc::MarkLost(file_.page(), code, text);
}

// A client that gives up by itself writes the page alone. It can't take that back.
bool SessionImpl::Alive() const {
  if (file_.page()->loss.load(std::memory_order_relaxed) != 0)
    lost_.store(true, std::memory_order_relaxed);
  return !stop_.load(std::memory_order_acquire) && !lost_.load(std::memory_order_relaxed);
}

// Where no other worker was before, there is nothing to replay, whatever the page says.
bool SessionImpl::Replays() const { return awaited_ != 0 && file_.page()->replaying.load() != 0; }

}  // namespace worker
