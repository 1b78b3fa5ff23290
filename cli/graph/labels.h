// Names of operations, streams and times, the same in text, JSON, DOT and SVG. Names come from the
// traced program: cli::Printable takes control letters out, and each format escapes the rest. Pure.
// Thread safety: stateless.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "cli/graph/iteration_graph.h"

namespace graph {

// The traced job, beside its graph: all formats show it.
struct Caption {
  uint64_t job = 0;
  uint64_t session = 0;
  std::string program;
  bool virtual_time = false;  // the times are a model's (docs/virtual_time.md)
};

// "reduce(float*)", "upload 4 KiB", "the host waits": up to `letters`, of at least 4.
std::string NameOf(const Operation& operation, size_t letters);

// "12.3 us", "4.56 ms"; "?" below 0.
std::string DurationText(int64_t ns);

// "device time", or "virtual time, a model's".
const char* TimeName(const Caption& caption);

// "1 edge", "2 edges".
std::string Counted(int64_t count, const char* one, const char* several);

// The name of the program's stream in this slot: "default" or a number from 1; "-" for no stream.
std::string StreamName(uint32_t slot);

// By which an operation is coloured: the program's own stream where it uses several, else the
// assigned one; from 0. A wait of the host has none: -1.
int ToneOf(const IterationGraph& graph, NodeId node);
bool ColouredByProgram(const IterationGraph& graph);

// True when the two operations are on different assigned streams. A wait of the host counts as a
// stream of its own.
bool IsSynchronisation(const IterationGraph& graph, NodeId from, NodeId to);

// "#rrggbb" of a tone, light enough for dark text; grey below 0.
std::string ColourCode(int tone);

// "256 x 1 x 1", without trailing ones: "256".
std::string SizesText(const uint32_t (&sizes)[3]);

}  // namespace graph
