// A report as one HTML file: headings, texts, tables and drawings (drawing.h). It loads nothing,
// runs no script, and reads in light and in dark. Thread safety: stateless.
#pragma once

#include <string>
#include <vector>

namespace report {

struct Table {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
  size_t texts = 1;   // the first so many columns are texts, the others figures
  std::string empty;  // what is said where there is no row
};

struct Section {
  std::string heading;
  std::string text;
  Table table;                        // none without a head
  std::vector<std::string> drawings;  // SVG
};

struct Page {
  std::string title;
  std::string text;
  std::vector<Section> sections;
};

std::string PageHtml(const Page& page);

}  // namespace report
