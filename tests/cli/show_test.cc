#include "cli/show.h"
#include "cli/table.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_replace.h"
#include "cli/commands.h"
#include "cli/manual.h"
#include "cli/terms_text.h"
#include "ipc/job_options.h"
#include "ipc/options.h"
#include "ipc/text_field.h"

namespace cli {
namespace {

constexpr char kStatus[] = R"({"ok":true,"version":"1.2.3",
  "daemon":{"pid":10,"runtime_dir":"/run/x","policy":"fifo","mode":"shared","transport":"ring"},
  "keeper":{"pid":11,"state":"ready"},
  "workers":[{"number":1,"pid":12,"state":"ready","sessions":1}],
  "devices":[{"ordinal":0,"name":"Soft","kind":"soft","capacity_bytes":4294967296,
              "used_bytes":1572864,"free_bytes":4293394432}],
  "jobs":[{"id":7,"programs":["a","train"],"sessions":2,"device_bytes":1572864,
           "empty_bytes":524288}],
  "sessions":[{"id":3,"pid":100,"program":"train","job":7,"transport":"ring","worker":1,
               "state":"running","device_bytes":1572864,"iterations":55,
               "recoverable":true,"obstacle":"",
               "in_flight":false,"ops":12345}],
  "faults":[{"session":2,"job":6,"program":"bad","code":700,"text":"kernel Stray, line 7"}]})";

TEST(ShowTest, BytesInTheLargestUnitThatFits) {
  EXPECT_EQ(BytesText(0), "0");
  EXPECT_EQ(BytesText(100), "100 B");
  EXPECT_EQ(BytesText(1536), "1.5 KiB");
  EXPECT_EQ(BytesText(uint64_t{2} << 30), "2 GiB");
}

TEST(ShowTest, TimesInTheUnitThatFits) {
  EXPECT_EQ(TimeText(0), "-");
  EXPECT_EQ(TimeText(999), "999 us");
  EXPECT_EQ(TimeText(12'340), "12.3 ms");
  EXPECT_EQ(TimeText(999'000), "999 ms");
  EXPECT_EQ(TimeText(3'210'000), "3.2 s");
  EXPECT_EQ(TimeText(125'000'000), "2 min 5 s");
  EXPECT_EQ(TimeText(7'500'000'000), "2 h 5 min");
}

TEST(ShowTest, AStrangersTextDoesNothingToTheTerminal) {
  EXPECT_EQ(Printable("a\x1b[2Jb\n\x7f"), "a?[2Jb??");
  EXPECT_EQ(Printable("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f");
}

TEST(ShowTest, StatusNamesWhatMatters) {
  const std::string text = StatusText(kStatus);
  for (const char* const word :
       {"1.2.3", "/run/x", "device 0  Soft (soft): 1.5 MiB used", "of 4 GiB", "a, train",
        "1.5 MiB (512 KiB empty)", "kernel Stray, line 7", "error 700, bad (job 6)"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word << "\n" << text;
  }
}

TEST(ShowTest, ALinePerSession) {
  EXPECT_EQ(SessionsText(R"({"sessions":[{"job":7,"session":3,"program":"train","pid":100,
      "state":"waits","wait":"its turn","lane":2,"iterations":40,"device_bytes":1572864,
      "ops":12345}]})"),
            "JOB  PROGRAM  STATE            TERMS  SESSION  PID  DEVICE  LANE  ITERATIONS  DEVICE "
            "MEMORY    OPS  RECOVERABLE\n"
            "7    train    waits: its turn  -            3  100       0     2          40        "
            "1.5 MiB  12345          yes\n");
}

TEST(ShowTest, NoSessionsIsSaidInsteadOfAHeadAlone) {
  EXPECT_EQ(SessionsText(R"({"sessions":[]})"), "no program uses the device\n");
}

TEST(ShowTest, TermsThatAreNotAsByDefaultAreNamed) {
  EXPECT_EQ(TermsText(ipc::TermsJson({})), "");
  ipc::SchedulingTerms terms;
  terms.priority = 0;
  terms.weight = 300;
  terms.deadline_us = 20'000;
  terms.gang = 2;
  ASSERT_TRUE(ipc::ParseDevices("1,0", &terms));
  ipc::control::SetText(terms.label, "night\x1b[2J");
  EXPECT_EQ(TermsText(ipc::TermsJson(terms)),
            "priority 0, weight 300, due in 20.0 ms, gang of 2, devices 1,0");
  EXPECT_EQ(WithLabel("train", ipc::TermsJson(terms)), "train (night?[2J)");
  EXPECT_EQ(WithLabel("train", {}), "train");
}

TEST(ManualTest, EveryCommandAndEveryFlagIsInIt) {
  const std::string page = ManualPage();
  for (const CommandInfo& command : Commands()) {
    const std::string name = absl::StrReplaceAll(command.name, {{"-", "\\-"}});  // as roff wants it
    EXPECT_NE(page.find("laneway " + name), std::string::npos) << command.name;
    for (const std::string& flag : command.flags) EXPECT_NE(ipc::FindFlag(flag), nullptr) << flag;
  }
  for (const char* const flag : {"\\-\\-device=", "\\-\\-transport=", "\\-\\-linger="}) {
    EXPECT_NE(page.find(flag), std::string::npos) << flag;
  }
}

}  // namespace
}  // namespace cli
