#include "cli/top_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace cli {
namespace {

constexpr char kTop[] = R"({"ok":true,"now_us":1,"policy":"srtf",
  "devices":[{"ordinal":0,"name":"Soft","capacity_bytes":4294967296,"used_bytes":1572864,
    "busy_percent":83}],
  "sessions":[
    {"job":7,"session":3,"program":"train","pid":9,"state":"running","iterations":120,
     "iterations_per_second":12.34,"p50_us":80000,"p99_us":95000,"waited_us":500000,
     "waiting_us":700000,"wait":"its turn","lane":2,"rank":1,"persistent_bytes":1048576,
     "ephemeral_bytes":524288,"device_bytes":1572864},
    {"job":8,"session":4,"program":"in\u001b[2J","pid":9,"state":"queued","iterations":0,
     "iterations_per_second":0,"p50_us":0,"p99_us":0,"waited_us":0,"device_bytes":0}]})";

TEST(TopTextTest, ALinePerSessionWithItsFigures) {
  const std::string text = TopText(kTop, 0, 0);
  for (const char* const word :
       {"policy srtf, sessions: 2", "device 0  Soft: 1.5 MiB of 4 GiB used, 83 % busy", "its turn",
        "12.3", "80.0 ms", "95.0 ms", "1.2 s", "512 KiB", "in?[2J", "queued"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word << "\n" << text;
  }
}

TEST(TopTextTest, FitsItsTerminal) {
  for (const size_t height : {1, 2, 3, 5, 6, 7, 40}) {
    for (const size_t width : {1, 10, 40, 200}) {
      const std::string text = TopText(kTop, width, height);
      EXPECT_LE(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')), height);
      size_t longest = 0, length = 0;
      for (const char letter : text) {
        length = letter == '\n' ? 0 : length + 1;
        longest = std::max(longest, length);
      }
      EXPECT_LE(longest, width);
    }
  }
  EXPECT_NE(TopText(kTop, 80, 5).find("... and 2 more"), std::string::npos) << TopText(kTop, 80, 5);
}

TEST(TopTextTest, SaysThatNothingRuns) {
  const std::string text =
      TopText(R"({"ok":true,"policy":"fifo","devices":[],"sessions":[]})", 80, 24);
  EXPECT_NE(text.find("no program runs"), std::string::npos);
}

}  // namespace
}  // namespace cli
