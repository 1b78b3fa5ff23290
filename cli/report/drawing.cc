#include "cli/report/drawing.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace report {
namespace {

constexpr double kWidth = 1080;
constexpr double kLeft = 120;  // for labels of rows and values
constexpr double kRight = 30;  // the half of a label of the axis
constexpr double kTop = 26;    // for the title
constexpr double kAxis = 34;
constexpr double kChartHeight = 220;
constexpr double kHairline = 0.5;        // pixels; narrower bands are merged
constexpr double kLabelRowHeight = 11;   // pixels; lower rows carry no text
constexpr double kCharacterWidth = 6.2;  // pixels, of the font that page.h sets
constexpr double kPointsPerCurve = 1500;
constexpr size_t kBandsPerRow = 2000;
constexpr int kTicks = 8;
constexpr size_t kLabelCharacters = 18;

struct Axis {
  double low = 0;
  double high = 1;
  double from = 0;  // pixels
  double to = 1;
  double At(double value) const { return from + (value - low) / (high - low) * (to - from); }
};

// 1, 2 or 5 times a power of ten, about `count` of them over the range.
double NiceStep(double range, int count) {
  const double raw = range / count;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (raw <= factor * power) return factor * power;
  }
  return 10 * power;
}

// For axes of time: steps that people count in.
double TimeStep(double range, int count) {
  for (const double step :
       {60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0, 18000.0, 43200.0, 86400.0}) {
    if (range / step <= count && range > 240) return step;
  }
  return NiceStep(range, count);
}

std::string Px(double value) { return absl::StrFormat("%.1f", value); }

std::string Text(double x, double y, const char* css_class, const std::string& text) {
  return absl::StrCat("<text x=\"", Px(x), "\" y=\"", Px(y), "\" class=\"", css_class, "\">",
                      Escaped(text), "</text>\n");
}

std::string Line(double x1, double y1, double x2, double y2, const char* css_class) {
  return absl::StrCat("<line x1=\"", Px(x1), "\" y1=\"", Px(y1), "\" x2=\"", Px(x2), "\" y2=\"",
                      Px(y2), "\" class=\"", css_class, "\"/>\n");
}

std::string Open(double height, const std::string& title) {
  return absl::StrCat("<svg viewBox=\"0 0 ", Px(kWidth), " ", Px(height),
                      "\" role=\"img\" aria-label=\"", Escaped(title), "\">\n",
                      Text(0, 15, "title", title));
}

std::string TimeAxis(const Axis& axis, double top, double bottom) {
  std::string svg;
  const double step = TimeStep(axis.high - axis.low, kTicks);
  for (double tick = std::ceil(axis.low / step) * step; tick <= axis.high; tick += step) {
    absl::StrAppend(&svg, Line(axis.At(tick), top, axis.At(tick), bottom, "grid"),
                    Text(axis.At(tick), bottom + 16, "tick middle", SecondsText(tick)));
  }
  return svg;
}

std::string Fill(int tone) {
  if (tone == kToneWaiting) return "class=\"waiting\"";
  if (tone == kToneMoving) return "class=\"moving\"";
  const Hsl colour = ColourOfTone(tone);
  return absl::StrFormat("fill=\"hsl(%d,%d%%,%d%%)\"", colour.hue, colour.saturation,
                         colour.lightness);
}

std::string BandSvg(const Band& band, const Axis& axis, double y, double height) {
  const double left = std::max(axis.At(band.begin), axis.from);
  const double width = std::min(axis.At(band.end), axis.to) - left;
  if (width <= 0) return {};
  std::string svg = absl::StrCat("<rect x=\"", absl::StrFormat("%.2f", left), "\" y=\"", Px(y),
                                 "\" width=\"", absl::StrFormat("%.2f", width), "\" height=\"",
                                 Px(height), "\" ", Fill(band.tone));
  if (band.label.empty()) return svg + "/>\n";
  absl::StrAppend(&svg, "><title>", Escaped(band.label), ": ", SecondsText(band.begin), " to ",
                  SecondsText(band.end), "</title></rect>\n");
  const double needed = kCharacterWidth * static_cast<double>(band.label.size()) + 4;
  if (height >= kLabelRowHeight && needed < width && band.tone >= 0) {
    absl::StrAppend(&svg, Text(left + width / 2, y + height / 2 + 3.5, "band middle", band.label));
  }
  return svg;
}

// Bands of a kind that follow each other within half a pixel become one; those still narrower are
// stretched to that, so that rare ones are seen.
std::vector<Band> Merged(const std::vector<Band>& bands, double hairline) {
  std::vector<Band> merged;
  for (const Band& band : bands) {
    Band* const last = merged.empty() ? nullptr : &merged.back();
    if (last != nullptr && last->tone == band.tone && last->label == band.label &&
        band.begin >= last->begin && band.begin <= last->end + hairline) {
      last->end = std::max(last->end, band.end);
    } else {
      merged.push_back(band);
      merged.back().end = std::max(band.end, band.begin + hairline);
    }
  }
  return merged;
}

// For rows of very many bands: each half pixel shows the one that has the most of it.
std::vector<Band> Rastered(const std::vector<Band>& bands, double hairline) {
  struct Most {
    double length = 0;
    const Band* band = nullptr;
  };
  std::vector<Band> plain;
  std::map<int64_t, Most> columns;
  for (const Band& band : bands) {
    if (band.tone == kToneWaiting) {
      plain.push_back(band);
      continue;
    }
    const int64_t last = static_cast<int64_t>(band.end / hairline);
    for (int64_t i = static_cast<int64_t>(band.begin / hairline); i <= last; ++i) {
      const double begin = static_cast<double>(i) * hairline;
      const double length = std::min(band.end, begin + hairline) - std::max(band.begin, begin);
      if (length > columns[i].length) columns[i] = {length, &band};
    }
  }
  for (const std::pair<const int64_t, Most>& column : columns) {
    if (column.second.band == nullptr) continue;
    Band band = *column.second.band;
    band.begin = static_cast<double>(column.first) * hairline;
    band.end = band.begin + hairline;
    plain.push_back(std::move(band));
  }
  return Merged(plain, 0.01 * hairline);
}

std::vector<Band> Visible(const std::vector<Band>& bands, double hairline) {
  return bands.size() > kBandsPerRow ? Rastered(bands, hairline) : Merged(bands, hairline);
}

// As many points as can be seen: of each run of neighbours the lowest and the highest.
std::vector<std::pair<double, double>> Thinned(const std::vector<std::pair<double, double>>& all) {
  const size_t group = static_cast<size_t>(2 * static_cast<double>(all.size()) / kPointsPerCurve);
  if (group < 2) return all;
  std::vector<std::pair<double, double>> thin;
  for (size_t begin = 0; begin < all.size(); begin += group) {
    size_t low = begin;
    size_t high = begin;
    for (size_t i = begin; i < std::min(begin + group, all.size()); ++i) {
      if (all[i].second < all[low].second) low = i;
      if (all[i].second > all[high].second) high = i;
    }
    thin.push_back(all[std::min(low, high)]);
    if (low != high) thin.push_back(all[std::max(low, high)]);
  }
  thin.push_back(all.back());
  return thin;
}

size_t ColorOf(const Curve& curve, size_t place) {
  return (curve.tone < 0 ? place : static_cast<size_t>(curve.tone)) % 8;
}

std::string CurveSvg(const Curve& curve, size_t number, const Axis& x, const Axis& y) {
  if (curve.points.empty()) return {};
  std::string path;
  double last_y = 0;
  for (const std::pair<double, double>& point : Thinned(curve.points)) {
    const double at_x = std::clamp(x.At(point.first), x.from, x.to);
    const double at_y = y.At(std::min(point.second, y.high));
    if (path.empty()) {
      absl::StrAppend(&path, "M", Px(at_x), " ", Px(at_y));
    } else if (curve.steps) {
      absl::StrAppend(&path, "L", Px(at_x), " ", Px(last_y), "L", Px(at_x), " ", Px(at_y));
    } else {
      absl::StrAppend(&path, "L", Px(at_x), " ", Px(at_y));
    }
    last_y = at_y;
  }
  const std::string color = absl::StrCat("c", ColorOf(curve, number));
  std::string svg;
  if (curve.filled) {
    const double first = std::clamp(x.At(curve.points.front().first), x.from, x.to);
    const double last = std::clamp(x.At(curve.points.back().first), x.from, x.to);
    absl::StrAppend(&svg, "<path d=\"", path, "L", Px(last), " ", Px(y.from), "L", Px(first), " ",
                    Px(y.from), "Z\" class=\"area ", color, "\"/>\n");
  }
  return absl::StrCat(svg, "<path d=\"", path, "\" class=\"curve ", color, "\"><title>",
                      Escaped(curve.name), "</title></path>\n");
}

std::string Legend(const std::vector<Curve>& curves) {
  std::string svg;
  double x = kLeft;
  for (size_t i = 0; i < curves.size(); ++i) {
    absl::StrAppend(&svg, "<rect x=\"", Px(x), "\" y=\"", Px(kTop - 2),
                    "\" width=\"14\" height=\"4\" class=\"key c", ColorOf(curves[i], i), "\"/>\n",
                    Text(x + 18, kTop + 4, "tick", curves[i].name));
    x += 34 + kCharacterWidth * static_cast<double>(curves[i].name.size());
  }
  return svg;
}

void FitAxes(const Chart& chart, Axis* x, Axis* y) {
  x->low = chart.x_min;
  x->high = chart.x_max;
  y->high = std::max(chart.y_max, chart.limit * 1.05);
  const bool fit_x = chart.x_max <= chart.x_min;
  for (const Curve& curve : chart.curves) {
    for (const std::pair<double, double>& point : curve.points) {
      if (fit_x) x->high = std::max(x->high, point.first);
      if (chart.y_max == 0) y->high = std::max(y->high, point.second * 1.05);
    }
  }
  if (x->high <= x->low) x->high = x->low + 1;
  if (y->high <= 0) y->high = 1;
}

}  // namespace

// 137 degrees are the golden angle.
Hsl ColourOfTone(int tone) {
  return {.hue = (tone * 137 + 205) % 360,
          .saturation = 58 - 12 * (tone / 5 % 2),
          .lightness = 56 + 8 * (tone % 3 - 1)};
}

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else if (c == '"') {
      escaped += "&quot;";
    } else if (c == '\'') {
      escaped += "&#39;";
    } else if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') {
      escaped += c;
    }
  }
  return escaped;
}

std::string SecondsText(double seconds) {
  const double size = std::abs(seconds);
  if (size == 0) return "0";
  if (size < 1e-3) return absl::StrFormat("%.3g us", seconds * 1e6);
  if (size < 1) return absl::StrFormat("%.3g ms", seconds * 1e3);
  if (size < 120) return absl::StrFormat("%.3g s", seconds);
  if (size < 3600 * 10) return absl::StrFormat("%.4g min", seconds / 60);
  return absl::StrFormat("%.4g h", seconds / 3600);
}

std::string TimelineSvg(const Timeline& timeline) {
  const double gap = timeline.row_height >= kLabelRowHeight ? 3 : 0.5;
  const double bottom =
      kTop + static_cast<double>(timeline.rows.size()) * (timeline.row_height + gap);
  Axis axis{timeline.begin, std::max(timeline.end, timeline.begin + 1e-6), kLeft, kWidth - kRight};
  const double hairline = kHairline * (axis.high - axis.low) / (axis.to - axis.from);
  std::string svg = Open(bottom + kAxis, timeline.title) + TimeAxis(axis, kTop, bottom);
  double y = kTop;
  for (const Row& row : timeline.rows) {
    if (timeline.row_height >= kLabelRowHeight) {
      const std::string label = row.label.size() <= kLabelCharacters
                                    ? row.label
                                    : row.label.substr(0, kLabelCharacters - 2) + "..";
      absl::StrAppend(&svg, Text(kLeft - 6, y + timeline.row_height / 2 + 4, "tick end", label));
    }
    for (const Band& band : Visible(row.bands, hairline)) {
      absl::StrAppend(&svg, BandSvg(band, axis, y, timeline.row_height));
    }
    y += timeline.row_height + gap;
  }
  return svg + "</svg>\n";
}

std::string ChartSvg(const Chart& chart) {
  const double top = kTop + 14;
  const double bottom = top + kChartHeight;
  Axis x{0, 0, kLeft, kWidth - kRight};
  Axis y{0, 0, bottom, top};
  FitAxes(chart, &x, &y);
  std::string svg =
      Open(bottom + kAxis + 14, chart.title) + Legend(chart.curves) + TimeAxis(x, top, bottom);
  const double step = NiceStep(y.high, 5);
  for (double tick = 0; tick <= y.high; tick += step) {
    absl::StrAppend(&svg, Line(kLeft, y.At(tick), kWidth - kRight, y.At(tick), "grid"),
                    Text(kLeft - 6, y.At(tick) + 4, "tick end", absl::StrFormat("%.4g", tick)));
  }
  for (size_t i = 0; i < chart.curves.size(); ++i) {
    absl::StrAppend(&svg, CurveSvg(chart.curves[i], i, x, y));
  }
  if (chart.limit > 0) {
    absl::StrAppend(
        &svg, Line(kLeft, y.At(chart.limit), kWidth - kRight, y.At(chart.limit), "limit"),
        Text(kWidth - kRight - 4, y.At(chart.limit) + 12, "tick end", chart.limit_name));
  }
  return absl::StrCat(svg, Text(0, top + 10, "tick", chart.y_label),
                      Text((kLeft + kWidth) / 2, bottom + 34, "tick middle", chart.x_label),
                      "</svg>\n");
}

}  // namespace report
