#include "cli/sim/jobs_csv.h"

#include <charconv>
#include <cmath>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace sim {
namespace {

// One column: exactly one of the three members says where its value goes.
struct Column {
  const char* name;
  std::string Job::*text = nullptr;
  double Job::*real = nullptr;
  int64_t Job::*whole = nullptr;
  double least = 0;
  double most = 1e12;
  bool required = false;
};

constexpr double kWholeMax = 1e15;

const std::vector<Column>& Columns() {
  static const std::vector<Column>* const columns = new std::vector<Column>{
      {"name", &Job::name},
      {"command", &Job::command},
      {"user", &Job::user},
      {"arrival_s", nullptr, &Job::arrival_s, nullptr, 0, 1e9, true},
      {"iterations", nullptr, nullptr, &Job::iterations, 1, kWholeMax, true},
      {"iteration_ms", nullptr, &Job::iteration_ms, nullptr, 0.001, 1e9, true},
      {"busy_percent", nullptr, &Job::busy_percent, nullptr, 1, 100},
      {"interference_percent", nullptr, &Job::interference_percent, nullptr, 0, 1000},
      {"persistent_mib", nullptr, &Job::persistent_mib, nullptr, 0, 1e9},
      {"ephemeral_mib", nullptr, &Job::ephemeral_mib, nullptr, 0, 1e9},
      {"priority", nullptr, nullptr, &Job::priority, 0, 1000},
      {"weight", nullptr, nullptr, &Job::weight, 1, 1e6},
      {"deadline_ms", nullptr, &Job::deadline_ms, nullptr, 0, 1e9},
      {"declared_iterations", nullptr, nullptr, &Job::declared_iterations, 0, kWholeMax},
      {"request_ms", nullptr, &Job::request_ms, nullptr, 0, 1e9},
  };
  return *columns;
}

std::string ColumnNames() {
  return absl::StrJoin(Columns(), ", ",
                       [](std::string* out, const Column& column) { *out += column.name; });
}

// The cells of one line. NotFound's place is taken by InvalidArgument: a quote that never closes.
absl::StatusOr<std::vector<std::string>> Cells(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted) {
      if (c != '"') {
        cells.back() += c;
      } else if (i + 1 < line.size() && line[i + 1] == '"') {
        cells.back() += line[++i];
      } else {
        quoted = false;
      }
    } else if (c == ',') {
      cells.emplace_back();
    } else if (c == '"') {
      quoted = true;
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  if (quoted) return absl::InvalidArgumentError("a quote is not closed");
  for (std::string& cell : cells) cell = std::string(absl::StripAsciiWhitespace(cell));
  return cells;
}

// std::from_chars on the whole text: no locale, no trailing characters.
template <typename Number>
bool Parse(const std::string& text, Number* value) {
  const std::from_chars_result end =
      std::from_chars(text.data(), text.data() + text.size(), *value);
  return end.ec == std::errc() && end.ptr == text.data() + text.size();
}

std::string Shown(double value) {
  return value == std::floor(value) && std::abs(value) <= kWholeMax
             ? absl::StrCat(static_cast<int64_t>(value))
             : absl::StrCat(value);
}

absl::Status SetCell(const Column& column, const std::string& cell, Job* job) {
  if (column.text != nullptr) {
    job->*column.text = cell;
    return absl::OkStatus();
  }
  double value = 0;
  if (column.whole != nullptr) {
    if (!Parse(cell, &(job->*column.whole))) {
      return absl::InvalidArgumentError(
          absl::StrCat(column.name, " is not a whole number: '", cell, "'"));
    }
    value = static_cast<double>(job->*column.whole);
  } else {
    if (!Parse(cell, &(job->*column.real)) || !std::isfinite(job->*column.real)) {
      return absl::InvalidArgumentError(
          absl::StrCat(column.name, " is not a number: '", cell, "'"));
    }
    value = job->*column.real;
  }
  if (value >= column.least && value <= column.most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(column.name, " is ", cell, ", not between ",
                                                 Shown(column.least), " and ", Shown(column.most)));
}

absl::StatusOr<std::vector<const Column*>> ParseHead(const std::vector<std::string>& names) {
  std::vector<const Column*> head;
  for (const std::string& name : names) {
    const Column* found = nullptr;
    for (const Column& column : Columns()) {
      if (name == column.name) found = &column;
    }
    if (found == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no column '", name, "'; columns are ", ColumnNames()));
    }
    for (const Column* const before : head) {
      if (before == found) {
        return absl::InvalidArgumentError(absl::StrCat("the column ", name, " is there twice"));
      }
    }
    head.push_back(found);
  }
  for (const Column& column : Columns()) {
    bool named = !column.required;
    for (const Column* const found : head) named |= found == &column;
    if (!named) return absl::InvalidArgumentError(absl::StrCat("lacks the column ", column.name));
  }
  return head;
}

absl::StatusOr<Job> ParseJob(const std::vector<const Column*>& head,
                             const std::vector<std::string>& cells) {
  if (cells.size() != head.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(cells.size(), " cells where the head line has ", head.size(), " columns"));
  }
  Job job;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (cells[i].empty() && !head[i]->required) continue;
    if (const absl::Status set = SetCell(*head[i], cells[i], &job); !set.ok()) return set;
  }
  return job;
}

std::string Quoted(const std::string& cell) {
  if (cell.find_first_of(",\"#\n ") == std::string::npos) return cell;
  std::string text = "\"";
  for (const char c : cell) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + "\"";
}

std::string CellText(const Column& column, const Job& job) {
  if (column.text != nullptr) return Quoted(job.*column.text);
  if (column.whole != nullptr) return absl::StrCat(job.*column.whole);
  char buffer[32];
  const std::to_chars_result end =
      std::to_chars(buffer, buffer + sizeof buffer, job.*column.real);  // shortest that reads back
  return std::string(buffer, end.ptr);
}

}  // namespace

absl::StatusOr<std::vector<Job>> ParseJobs(std::string_view text, const std::string& file) {
  std::vector<Job> jobs;
  std::vector<const Column*> head;
  int number = 0;
  for (const absl::string_view line :
       absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    ++number;
    const absl::string_view stripped = absl::StripAsciiWhitespace(line);
    if (stripped.empty() || stripped[0] == '#') continue;
    const absl::StatusOr<std::vector<std::string>> cells =
        Cells(std::string_view(line.data(), line.size()));
    absl::Status wrong = cells.status();
    if (cells.ok() && head.empty()) {
      absl::StatusOr<std::vector<const Column*>> parsed = ParseHead(*cells);
      wrong = parsed.status();
      if (parsed.ok()) head = *std::move(parsed);
    } else if (cells.ok()) {
      absl::StatusOr<Job> job = ParseJob(head, *cells);
      wrong = job.status();
      if (job.ok()) jobs.push_back(*std::move(job));
    }
    if (!wrong.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(file, ":", number, ": ", wrong.message()));
    }
  }
  if (jobs.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(file, ":", number, ": there are no jobs"));
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i].name.empty()) jobs[i].name = absl::StrCat("job-", i);
  }
  return jobs;
}

absl::StatusOr<std::vector<Job>> ReadJobs(const std::string& path) {
  if (path == "-") {
    return ParseJobs(std::string(std::istreambuf_iterator<char>(std::cin), {}), "standard input");
  }
  std::ifstream file(path);
  std::ostringstream text;
  if (file && file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
  if (!file && !file.eof()) return absl::InvalidArgumentError(absl::StrCat("cannot read ", path));
  return ParseJobs(text.str(), path);
}

std::string JobsText(const std::vector<Job>& jobs, const std::string& comment) {
  std::string text;
  for (const absl::string_view line : absl::StrSplit(comment, '\n', absl::SkipEmpty())) {
    absl::StrAppend(&text, "# ", line, "\n");
  }
  // Columns in which no job differs from the default are left out.
  std::vector<const Column*> shown;
  for (const Column& column : Columns()) {
    bool wanted = column.required;
    for (const Job& job : jobs) wanted |= CellText(column, job) != CellText(column, Job());
    if (wanted) shown.push_back(&column);
  }
  absl::StrAppend(
      &text,
      absl::StrJoin(shown, ",",
                    [](std::string* out, const Column* column) { *out += column->name; }),
      "\n");
  for (const Job& job : jobs) {
    absl::StrAppend(&text,
                    absl::StrJoin(shown, ",",
                                  [&job](std::string* out, const Column* column) {
                                    *out += CellText(*column, job);
                                  }),
                    "\n");
  }
  return text;
}

}  // namespace sim
