// What a graph looks like as text, DOT, JSON and SVG; hostile names above all.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/graph/dot.h"
#include "cli/graph/graph_json.h"
#include "cli/graph/labels.h"
#include "cli/graph/operations.h"
#include "cli/graph/summary.h"
#include "cli/graph/svg.h"
#include "tests/cli/graph/record_bytes.h"

namespace graph {
namespace {

using scheduler::streams::Access;

constexpr uint32_t kFirstStream = ipc::limits::kLegacySlots;
const Caption kCaption = {.job = 3, .session = 4, .program = "a & b", .virtual_time = false};
const std::string kHostile = "</text><script>x\x1b[2J\"]; \\n} \xc2\x9b\xff'--";

// A launch and its successor on another stream, a wait of the host for it, and one more.
IterationGraph Drawn(const std::string& kernel, const std::string& unknown) {
  std::vector<Record> records;
  uint64_t unreadable = 0;
  std::string bytes = LaunchBytes(1, kFirstStream, {.kernel = kernel}) +
                      LaunchBytes(2, kFirstStream, {.kernel = "_Z4copyPfPKf"}) +
                      WaitedBytes(3, {ipc::WaitedFor::kStream, kFirstStream, 0}) +
                      LaunchBytes(4, kFirstStream + 1, {.kernel = "last"});
  DecodeRecordsUntrusted(bytes, &records, &unreadable);
  EXPECT_EQ(unreadable, 0u);
  const Prove prove = [&](const SentCall& launch) {
    Touched touched;
    if (launch.kernel == kernel) touched.unknown = unknown;
    touched.touches = {{{64, 4}, Access::kUpdate}};
    return touched;
  };
  return *MakeGraph(OperationsOf(records, {{1, 1500}, {2, 500}}, prove));
}

TEST(SummaryTest, SaysWhatThereIs) {
  const std::string text = SummaryText(Drawn("_Z3addPf", "a call of vprintf in line 3"), kCaption);
  EXPECT_EQ(text,
            "one iteration of job 3, session 4: a & b\n"
            "  operations     3 kernels, 1 wait of the host\n"
            "  program's      2 streams\n"
            "  dependencies   3 edges after transitive reduction; memory known of 2 of 3 kernels\n"
            "  concurrency    degree 1: 1 stream with 0 synchronisations would have all of it\n"
            "  critical path  2 of 3 operations, 2.0 us of 2.0 us (device time; 1 without a time)\n"
            "\n"
            "longest kernels, by device time (*: on the critical path)\n"
            "  kernel                      blocks  threads  stream    time  of all\n"
            "* add(float*)                      3       32       1  1.5 us  75.0 %\n"
            "* copy(float*, float const*)       3       32       1  0.5 us  25.0 %\n"
            "\n"
            "memory not known, so they keep their place in the program's order\n"
            "  1 x add(float*): a call of vprintf in line 3\n");
}

TEST(SummaryTest, NothingProvenIsProgramOrder) {
  std::vector<Record> records;
  uint64_t unreadable = 0;
  DecodeRecordsUntrusted(LaunchBytes(1, kFirstStream, {.kernel = "k"}), &records, &unreadable);
  const IterationWork work = OperationsOf(records, {}, [](const SentCall&) {
    return Touched{{}, "no PTX"};
  });
  const std::string text = SummaryText(*MakeGraph(work), kCaption);
  EXPECT_NE(text.find("0 of 1 kernel, so program order is the order"), std::string::npos) << text;
  EXPECT_NE(text.find("no times are known"), std::string::npos) << text;
}

TEST(SummaryTest, VirtualTimesAreCalledSo) {
  Caption caption = kCaption;
  caption.virtual_time = true;
  const IterationGraph graph = Drawn("k", "");
  EXPECT_NE(SummaryText(graph, caption).find("virtual time"), std::string::npos);
  EXPECT_NE(GraphSvg(graph, caption).find("virtual time"), std::string::npos);
  EXPECT_NE(DotText(graph, caption).find("virtual time"), std::string::npos);
  EXPECT_TRUE(nlohmann::json::parse(GraphJson(graph, caption))["virtual_time"]);
}

TEST(NamesTest, AreHarmlessEverywhere) {
  const IterationGraph graph = Drawn(kHostile, kHostile);
  Caption caption = kCaption;
  caption.program = kHostile;
  const std::string text = SummaryText(graph, caption), svg = GraphSvg(graph, caption),
                    dot = DotText(graph, caption), json = GraphJson(graph, caption);
  for (const std::string* const shown : {&text, &svg, &dot, &json}) {
    EXPECT_EQ(shown->find('\x1b'), std::string::npos);
    EXPECT_EQ(shown->find("\xff"), std::string::npos);
  }
  EXPECT_EQ(text.find("\xc2\x9b"), std::string::npos) << "an escape of 8-bit terminals";
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_EQ(svg.find("\xc2\x9b"), std::string::npos);
  // Each string of the language ends where it was meant to.
  bool quoted = false;
  for (size_t i = 0; i < dot.size(); ++i) {
    if (quoted && dot[i] == '\\') {
      ++i;
    } else if (dot[i] == '"') {
      quoted = !quoted;
    } else {
      EXPECT_FALSE(quoted && dot[i] == '\n');
      EXPECT_TRUE(quoted || dot[i] != '\\') << dot.substr(i, 20);
    }
  }
  EXPECT_FALSE(quoted);
  EXPECT_TRUE(nlohmann::json::parse(json).is_object());
}

TEST(NamesTest, LongNamesAreCutBetweenLetters) {
  Operation operation;
  operation.kind = Operation::Kind::kCopy;
  operation.name = std::string(5, 'a') + "\xe2\x82\xac" + std::string(20, 'b');
  EXPECT_EQ(NameOf(operation, 9), "aaaaa..");
  EXPECT_EQ(NameOf(operation, 10), "aaaaa\xe2\x82\xac..");
}

TEST(DotTest, MarksStreamsSynchronisationsAndTheCriticalPath) {
  const std::string dot = DotText(Drawn("k", "why"), kCaption);
  EXPECT_NE(dot.find("n0 [label=\"k\\n1.5 us\""), std::string::npos) << dot;
  EXPECT_NE(dot.find("style=\"filled,dashed\", penwidth=3"), std::string::npos) << dot;
  EXPECT_NE(dot.find("n0 -> n1 [style=solid, penwidth=3]"), std::string::npos) << dot;
  EXPECT_NE(dot.find("shape=hexagon"), std::string::npos) << dot;
}

TEST(JsonTest, HasNodesAndEdges) {
  const nlohmann::json json = nlohmann::json::parse(GraphJson(Drawn("k", "why"), kCaption));
  ASSERT_EQ(json["nodes"].size(), 4u);
  EXPECT_EQ(json["edges"].size(), 3u);
  EXPECT_EQ(json["nodes"][0]["unknown"], "why");
  EXPECT_EQ(json["nodes"][1]["touches"][0]["use"], "updates");
  EXPECT_EQ(json["nodes"][1]["time_ns"], 500);
  EXPECT_EQ(json["nodes"][2]["kind"], "host_wait");
  EXPECT_FALSE(json["nodes"][3].contains("time_ns"));
  EXPECT_EQ(json["critical_path_ns"], 2000);
  EXPECT_EQ(json["program_streams"], 2);
}

TEST(ColourTest, IsThatOfTheOtherDrawings) {
  EXPECT_EQ(ColourCode(-1), "#d0d0d0");
  EXPECT_EQ(ColourCode(0).size(), 7u);
  EXPECT_NE(ColourCode(0), ColourCode(1));
  EXPECT_EQ(ColourCode(0), ColourCode(0));
}

}  // namespace
}  // namespace graph
