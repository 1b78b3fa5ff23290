#include <gtest/gtest.h>

#include "cli/report/drawing.h"
#include "cli/report/page.h"

namespace report {
namespace {

size_t Count(const std::string& text, const std::string& word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST(ReportTest, TextsAreEscaped) {
  EXPECT_EQ(Escaped("<b> & \"c\" 'd'\x01"), "&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
  Timeline timeline{"<x>", 0, 10, 20, {{"r<", {{0, 10, 0, "a\"<script>"}}}}};
  const std::string svg = TimelineSvg(timeline);
  EXPECT_EQ(svg.find("<script>"), std::string::npos);
  EXPECT_EQ(svg.find("r<<"), std::string::npos);
}

TEST(ReportTest, BandsLieWhereTheyBelong) {
  Timeline timeline{"t", 0, 100, 20, {{"one", {{0, 50, 0, "a"}, {50, 100, 1, "b"}}}}};
  const std::string svg = TimelineSvg(timeline);
  EXPECT_NE(svg.find("<rect x=\"120.00\" y=\"26.0\" width=\"465.00\""), std::string::npos) << svg;
  EXPECT_NE(svg.find("<rect x=\"585.00\" y=\"26.0\" width=\"465.00\""), std::string::npos) << svg;
}

TEST(ReportTest, WhatNobodyCanSeeIsNotDrawn) {
  Timeline timeline{"t", 0, 1000, 20, {{"one", {}}}};
  for (int i = 0; i < 100'000; ++i) {
    timeline.rows[0].bands.push_back({i * 0.01, i * 0.01 + 0.005, i % 3, "x"});
  }
  EXPECT_LT(TimelineSvg(timeline).size(), 1'000'000u);
  Chart chart;
  chart.curves = {{"c", {}, true, true}};
  for (int i = 0; i < 100'000; ++i) chart.curves[0].points.push_back({i, i % 7});
  EXPECT_LT(ChartSvg(chart).size(), 200'000u);
}

TEST(ReportTest, RareBandsAreSeen) {
  Timeline timeline{"t", 0, 1e6, 20, {{"one", {{5, 6, 0, "short"}}}}};
  EXPECT_NE(TimelineSvg(timeline).find("width=\"0.50\""), std::string::npos);
}

TEST(ReportTest, NothingToDrawIsNoFailure) {
  EXPECT_NE(TimelineSvg({}).find("</svg>"), std::string::npos);
  EXPECT_NE(ChartSvg({}).find("</svg>"), std::string::npos);
  Chart chart;
  chart.curves = {{"empty", {}, true, true}};
  EXPECT_EQ(ChartSvg(chart).find("nan"), std::string::npos);
}

TEST(ReportTest, APageLoadsNothing) {
  Page page{"Title", "Text", {{"Heading", "words", {{"a", "b"}, {{"x", "1"}}}, {ChartSvg({})}}}};
  const std::string html = PageHtml(page);
  for (const char* const word :
       {"http:", "https:", "src=", "<script", "<link", "@import", "url("}) {
    EXPECT_EQ(html.find(word), std::string::npos) << word;
  }
  EXPECT_EQ(Count(html, "<h2>"), 1u);
  EXPECT_EQ(Count(html, "<td"), 2u);
  EXPECT_NE(html.find("<td class=\"text\">x</td><td>1</td>"), std::string::npos);
}

TEST(ReportTest, ATableWithoutRowsSaysSoInsteadOfItsHead) {
  Page page{"Title", "", {{"Heading", "", {{"a", "b"}, {}, 1, "Nothing yet."}, {}}}};
  const std::string html = PageHtml(page);
  EXPECT_EQ(html.find("<th"), std::string::npos);
  EXPECT_NE(html.find("<p>Nothing yet.</p>"), std::string::npos);
}

TEST(ReportTest, ACurveHasTheColourThatItWasGiven) {
  Chart chart;
  chart.curves = {{"one", {{0, 0}, {1, 1}}}, {"two", {{0, 0}, {1, 1}}}};
  EXPECT_NE(ChartSvg(chart).find("class=\"curve c1\""), std::string::npos);
  chart.curves[1].tone = 13;
  const std::string svg = ChartSvg(chart);
  EXPECT_NE(svg.find("class=\"curve c5\""), std::string::npos);
  EXPECT_NE(svg.find("class=\"key c5\""), std::string::npos);
  EXPECT_EQ(svg.find("c1\""), std::string::npos);
}

TEST(ReportTest, TimesAreShort) {
  EXPECT_EQ(SecondsText(0), "0");
  EXPECT_EQ(SecondsText(0.00005), "50 us");
  EXPECT_EQ(SecondsText(0.05), "50 ms");
  EXPECT_EQ(SecondsText(90), "90 s");
  EXPECT_EQ(SecondsText(600), "10 min");
  EXPECT_EQ(SecondsText(360000), "100 h");
}

}  // namespace
}  // namespace report
