#include "daemon/control/metrics.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace control {
namespace {

// Programs choose their names: bytes that would end a label or are no plain text become '?'.
std::string Label(const std::string& text) {
  std::string label = text;
  for (char& letter : label) {
    const bool plain = letter >= 0x20 && letter < 0x7f && letter != '"' && letter != '\\';
    if (!plain) letter = '?';
  }
  return label;
}

class Page {
 public:
  void Begin(const char* name, const char* type, const char* help) {
    name_ = name;
    absl::StrAppend(&text_, "# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
  }
  void Add(const std::string& labels, const std::string& value, const char* ending = "") {
    absl::StrAppend(&text_, name_, ending, labels.empty() ? "" : absl::StrCat("{", labels, "}"),
                    " ", value, "\n");
  }
  void Add(const std::string& labels, uint64_t value) { Add(labels, absl::StrCat(value)); }
  std::string Take() { return std::move(text_); }

 private:
  std::string name_;
  std::string text_;
};

std::string Seconds(uint64_t us) { return absl::StrFormat("%.6f", static_cast<double>(us) / 1e6); }

void AddDevices(const TopInput& input, Page* page) {
  const KeeperState& keeper = input.children.keeper();
  page->Begin("laneway_device_capacity_bytes", "gauge", "Memory of the device.");
  for (uint32_t i = 0; i < keeper.description.device_count; ++i) {
    page->Add(absl::StrCat("device=\"", i, "\""), keeper.description.devices[i].capacity_bytes);
  }
  page->Begin("laneway_device_used_bytes", "gauge", "Memory in use, as of the last status.");
  for (uint32_t i = 0; i < keeper.description.device_count; ++i) {
    page->Add(absl::StrCat("device=\"", i, "\""), keeper.description.devices[i].used_bytes);
  }
}

void AddUse(const TopInput& input, Page* page) {
  page->Begin("laneway_device_busy_percent", "gauge", "Of the last half second.");
  for (uint32_t i = 0; i < input.children.keeper().description.device_count; ++i)
    page->Add(absl::StrCat("device=\"", i, "\""), input.use.PercentOf(i));
}

void AddUsers(const TopInput& input, Page* page) {
  const auto each = [&input, page](const char* name, const char* help,
                                   uint64_t (*value)(const scheduler::User& user)) {
    page->Begin(name, "gauge", help);
    for (const std::pair<const uint32_t, scheduler::User>& entry : input.state.users)
      page->Add(absl::StrCat("user=\"", entry.first, "\""), value(entry.second));
  };
  each("laneway_user_sessions", "Sessions of the user that are let in.",
       [](const scheduler::User& user) { return uint64_t{user.admitted}; });
  each("laneway_user_sessions_quota", "How many may be; 0: no quota.",
       [](const scheduler::User& user) { return uint64_t{user.sessions_max}; });
  each("laneway_user_memory_quota_bytes", "Of each device, for the user; 0: no quota.",
       [](const scheduler::User& user) { return static_cast<uint64_t>(user.memory_bytes); });
}

void AddSessions(const TopInput& input, Page* page) {
  const std::vector<SessionView> views = ViewsOf(input);
  std::map<std::string, uint64_t> states;
  for (const SessionView& view : views) ++states[view.state];
  page->Begin("laneway_sessions", "gauge", "Sessions, by what they do.");
  for (const std::pair<const std::string, uint64_t>& state : states) {
    page->Add(absl::StrCat("state=\"", state.first, "\""), state.second);
  }
  const auto labels = [](const SessionView& view) {
    const ipc::control::SessionRecord& record = view.session->record;
    const std::string label = Label(record.job.scheduling.label);
    return absl::StrCat("job=\"", record.job.number, "\",session=\"", record.session_id,
                        "\",program=\"", Label(record.program), "\"",
                        label.empty() ? "" : absl::StrCat(",label=\"", label, "\""));
  };
  const struct {
    const char* name;
    const char* type;
    const char* help;
    uint64_t (*value)(const SessionView& view);
  } kWords[] = {
      {"laneway_session_iterations_total", "counter", "Iterations that ended.",
       [](const SessionView& view) { return view.figures.iterations; }},
      {"laneway_session_switches_total", "counter", "Times that the lane was handed over.",
       [](const SessionView& view) { return view.figures.switches; }},
      {"laneway_session_persistent_bytes", "gauge", "Persistent memory.",
       [](const SessionView& view) { return view.persistent_bytes; }},
      {"laneway_session_ephemeral_bytes", "gauge", "Ephemeral memory of an iteration.",
       [](const SessionView& view) { return view.ephemeral_bytes; }},
      {"laneway_session_lane", "gauge", "The lane's number; 0: none.",
       [](const SessionView& view) { return view.lane; }},
      {"laneway_session_device", "gauge", "The device on which it is counted.",
       [](const SessionView& view) { return uint64_t{view.session->record.device}; }},
      {"laneway_session_priority", "gauge", "Its job's class; 0 is the most urgent.",
       [](const SessionView& view) {
         return uint64_t{view.session->record.job.scheduling.priority};
       }},
      {"laneway_session_weight", "gauge", "Its weight where time is shared by weights.",
       [](const SessionView& view) {
         return uint64_t{view.session->record.job.scheduling.weight};
       }},
      {"laneway_session_gang", "gauge", "Sessions of its job that run together; 0: no gang.",
       [](const SessionView& view) { return uint64_t{view.session->record.job.scheduling.gang}; }},
  };
  for (const auto& word : kWords) {
    page->Begin(word.name, word.type, word.help);
    for (const SessionView& view : views) page->Add(labels(view), word.value(view));
  }
  page->Begin("laneway_session_deadline_seconds", "gauge",
              "When an iteration is due, from when its work is there; 0: never.");
  for (const SessionView& view : views)
    page->Add(labels(view), Seconds(view.session->record.job.scheduling.deadline_us));
  page->Begin("laneway_session_busy_seconds_total", "counter",
              "Time for which it had the device, as policies count it.");
  for (const SessionView& view : views) page->Add(labels(view), Seconds(view.busy_us));
  page->Begin("laneway_session_waited_seconds_total", "counter", "Time spent waiting.");
  for (const SessionView& view : views) {
    page->Add(labels(view), Seconds(view.figures.waited_us + view.waiting_us));
  }
  page->Begin("laneway_iteration_seconds", "summary",
              "Times of iterations; quantiles are of late.");
  for (const SessionView& view : views) {
    const std::string names = labels(view);
    page->Add(names + ",quantile=\"0.5\"", Seconds(view.figures.p50_us));
    page->Add(names + ",quantile=\"0.99\"", Seconds(view.figures.p99_us));
    page->Add(names, Seconds(view.figures.total_us), "_sum");
    page->Add(names, absl::StrCat(view.figures.iterations), "_count");
  }
}

}  // namespace

std::string MetricsText(const TopInput& input, uint64_t faults, const Journal& journal) {
  Page page;
  page.Begin("laneway_info", "gauge", "What serves.");
  page.Add(
      absl::StrCat("version=\"", LANEWAY_VERSION, "\",policy=\"", input.state.policy->name(), "\""),
      1);
  AddDevices(input, &page);
  AddUse(input, &page);
  AddUsers(input, &page);
  AddSessions(input, &page);
  page.Begin("laneway_faults_total", "counter", "Faults since the daemon began.");
  page.Add("", faults);
  page.Begin("laneway_journal_events_total", "counter", "Events that the journal was told.");
  page.Add("", journal.last());
  return page.Take();
}

}  // namespace control
