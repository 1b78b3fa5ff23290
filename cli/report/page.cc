#include "cli/report/page.h"

#include "absl/strings/str_cat.h"
#include "cli/report/drawing.h"

namespace report {
namespace {

constexpr char kStyle[] = R"(
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #5c6670; --line: #dfe3e8; --page: #fff;
  --wait: #e4e7eb; --move: #d08a1d;
  --c0: #2563c9; --c1: #d1495b; --c2: #2a9d6f; --c3: #b07aa1; --c4: #e08e2b; --c5: #00909e;
  --c6: #7f6a4d; --c7: #6b7280; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaed; --soft: #9aa4ae; --line: #343b43;
  --page: #14181c; --wait: #2b323a; } }
body { font: 15px/1.5 system-ui, "Liberation Sans", sans-serif; color: var(--ink);
  background: var(--page); max-width: 1120px; margin: 2.5rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.6rem; margin: 0 0 .4rem; } h2 { font-size: 1.15rem; margin: 2.4rem 0 .5rem; }
p { margin: .3rem 0 1rem; color: var(--soft); max-width: 76ch; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums;
  margin: .6rem 0 1.2rem; }
th { font-weight: 600; color: var(--soft); } td, th { padding: .25rem .8rem .25rem 0;
  border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
td.text, th.text { text-align: left; }
svg { width: 100%; height: auto; display: block; margin: .8rem 0 1.4rem;
  font: 11px system-ui, "Liberation Sans", sans-serif; }
svg text { fill: var(--ink); } svg .title { font-weight: 600; font-size: 13px; }
svg .tick { fill: var(--soft); } svg .middle { text-anchor: middle; } svg .end { text-anchor: end; }
svg .band { fill: #fff; font-size: 10.5px; pointer-events: none; }
svg .grid { stroke: var(--line); } svg .limit { stroke: var(--c1); stroke-dasharray: 5 4; }
svg .waiting { fill: var(--wait); } svg .moving { fill: var(--move); }
svg .curve { fill: none; stroke-width: 1.8; } svg .area { stroke: none; opacity: .22; }
)";

std::string ColorRules() {
  std::string css;
  for (int i = 0; i < 8; ++i) {
    absl::StrAppend(&css, "svg .curve.c", i, " { stroke: var(--c", i, "); } svg .area.c", i,
                    ", svg .key.c", i, " { fill: var(--c", i, "); }\n");
  }
  return css;
}

std::string RowHtml(const std::vector<std::string>& cells, size_t texts, const char* element) {
  std::string html = "<tr>";
  for (size_t i = 0; i < cells.size(); ++i) {
    absl::StrAppend(&html, "<", element, i < texts ? " class=\"text\">" : ">", Escaped(cells[i]),
                    "</", element, ">");
  }
  return html + "</tr>\n";
}

std::string Paragraph(const std::string& text) {
  return text.empty() ? "" : absl::StrCat("<p>", Escaped(text), "</p>\n");
}

std::string TableHtml(const Table& table) {
  if (table.head.empty()) return {};
  if (table.rows.empty() && !table.empty.empty()) return Paragraph(table.empty);
  std::string html = "<div class=\"wide\"><table>\n" + RowHtml(table.head, table.texts, "th");
  for (const std::vector<std::string>& row : table.rows) {
    absl::StrAppend(&html, RowHtml(row, table.texts, "td"));
  }
  return html + "</table></div>\n";
}

}  // namespace

std::string PageHtml(const Page& page) {
  std::string html = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
      Escaped(page.title), "</title>\n<style>", kStyle, ColorRules(),
      "</style></head>\n<body>\n<h1>", Escaped(page.title), "</h1>\n", Paragraph(page.text));
  for (const Section& section : page.sections) {
    absl::StrAppend(&html, "<h2>", Escaped(section.heading), "</h2>\n", Paragraph(section.text),
                    TableHtml(section.table));
    for (const std::string& drawing : section.drawings) absl::StrAppend(&html, drawing);
  }
  return html + "</body></html>\n";
}

}  // namespace report
