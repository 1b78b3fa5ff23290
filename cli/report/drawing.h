// Drawings as SVG text: who did what when, and curves. For reports that are one file and load
// nothing from anywhere.
//
// Colours are CSS variables and classes that report/page.h defines, so that one drawing fits a
// light and a dark page. Texts are escaped here. A drawing stays small whatever is drawn: what is
// narrower than half a pixel is merged with its neighbours. Thread safety: stateless.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace report {

// A piece of time in a row. Tones below 0 are the plain ones, others are colours by number.
inline constexpr int kToneWaiting = -1;
inline constexpr int kToneMoving = -2;  // memory on its way to or from the host
struct Band {
  double begin = 0;
  double end = 0;
  int tone = 0;
  std::string label;  // inside, where there is room; and as a hint
};
struct Row {
  std::string label;
  std::vector<Band> bands;  // later ones are drawn over earlier ones
};
// Rows over one axis of time, in seconds.
struct Timeline {
  std::string title;
  double begin = 0;
  double end = 0;
  double row_height = 18;  // pixels
  std::vector<Row> rows;
};
std::string TimelineSvg(const Timeline& timeline);

struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;  // by x, ascending
  bool steps = false;                             // holds each value until the next point
  bool filled = false;                            // down to the axis
  int tone = -1;                                  // colour; < 0: by its place among the curves
};
struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  double x_min = 0;
  double x_max = 0;  // equal to x_min: what the curves need
  double y_max = 0;  // 0: what the curves need
  double limit = 0;  // a line across, 0: none
  std::string limit_name;
  std::vector<Curve> curves;
};
std::string ChartSvg(const Chart& chart);

// The colour of a tone of at least 0. Golden angle steps: neighbours differ, and a number keeps its
// colour in all drawings.
struct Hsl {
  int hue = 0;         // degrees
  int saturation = 0;  // percent
  int lightness = 0;
};
Hsl ColourOfTone(int tone);

// For HTML and SVG, in texts and in attributes.
std::string Escaped(const std::string& text);

// "950 ms", "12.5 s", "3.4 min", "5 h": short, for axes and tables.
std::string SecondsText(double seconds);

}  // namespace report
