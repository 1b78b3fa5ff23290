// Events of the trace format for one process of a trace: names, slices, instants and counters, cut
// to a window of time. Thread safety: none.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace cli {

// Microseconds of CLOCK_MONOTONIC.
struct TraceSpan {
  int64_t begin_us = 0;
  int64_t end_us = 0;
};

class TraceEvents {
 public:
  // Appends JSON objects to `text`, with commas between them. Times count from `origin_us`.
  // REQUIRES: the window does not begin before the origin; `text` outlives the events.
  TraceEvents(uint64_t process, const TraceSpan& window, int64_t origin_us, std::string* text)
      : process_(process), window_(window), origin_us_(origin_us), text_(*text) {}

  // True when a part of the span lies in the window.
  bool IsSeen(const TraceSpan& span) const;
  void NameProcess(const std::string& name);
  // Ignored for a thread that has a name.
  void NameThread(uint64_t thread, const std::string& name);
  // The part within the window. Slices of a thread nest when they are told by their begins, and of
  // two that begin together the longer one first.
  void Slice(uint64_t thread, const char* category, const std::string& name, const TraceSpan& span,
             nlohmann::ordered_json args = nlohmann::ordered_json::object());
  void Instant(uint64_t thread, const std::string& name, int64_t at_us);
  // A figure that was so before the window is so at the window's begin.
  void Counter(const char* name, int64_t at_us, int64_t value);

 private:
  void Add(const nlohmann::ordered_json& event);

  const uint64_t process_;
  const TraceSpan window_;
  const int64_t origin_us_;
  std::string& text_;
  std::set<uint64_t> named_;
};

}  // namespace cli
