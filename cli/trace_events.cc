#include "cli/trace_events.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace cli {

bool TraceEvents::IsSeen(const TraceSpan& span) const {
  return span.end_us >= window_.begin_us && span.begin_us <= window_.end_us;
}

void TraceEvents::NameProcess(const std::string& name) {
  Add({{"ph", "M"},
       {"name", "process_name"},
       {"pid", process_},
       {"tid", 0},
       {"args", {{"name", name}}}});
}

void TraceEvents::NameThread(uint64_t thread, const std::string& name) {
  if (!named_.insert(thread).second) return;
  Add({{"ph", "M"},
       {"name", "thread_name"},
       {"pid", process_},
       {"tid", thread},
       {"args", {{"name", name}}}});
}

void TraceEvents::Slice(uint64_t thread, const char* category, const std::string& name,
                        const TraceSpan& span, nlohmann::ordered_json args) {
  if (!IsSeen(span)) return;
  const int64_t begin_us = std::max(span.begin_us, window_.begin_us);
  const int64_t end_us = std::min(span.end_us, window_.end_us);
  Add({{"ph", "X"},
       {"name", name},
       {"cat", category},
       {"pid", process_},
       {"tid", thread},
       {"ts", begin_us - origin_us_},
       {"dur", end_us - begin_us},
       {"args", std::move(args)}});
}

void TraceEvents::Instant(uint64_t thread, const std::string& name, int64_t at_us) {
  if (!IsSeen({at_us, at_us})) return;
  Add({{"ph", "i"},
       {"s", "t"},
       {"name", name},
       {"pid", process_},
       {"tid", thread},
       {"ts", at_us - origin_us_}});
}

void TraceEvents::Counter(const char* name, int64_t at_us, int64_t value) {
  if (at_us > window_.end_us) return;
  Add({{"ph", "C"},
       {"name", name},
       {"pid", process_},
       {"ts", std::max(at_us, window_.begin_us) - origin_us_},
       {"args", {{"value", value}}}});
}

// Texts of fronts may be in any encoding.
void TraceEvents::Add(const nlohmann::ordered_json& event) {
  absl::StrAppend(&text_, text_.empty() ? "" : ",\n",
                  event.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace cli
