// What a client records of a program, and the function that is made of it.
//
// A function is made of one recorded iteration. The iterations after that one are compared with
// the function, and become its samples. Words of kernels' parameters that differ become scalar
// inputs; addresses may differ, for the recorded iteration keeps its own. Everything else that
// differs is a reason to refuse, in a sentence for people.
//
// Thread safety: values; the function is pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "functions/function.h"

namespace functions {

struct RecordedCall {
  StepKind kind = StepKind::kCall;
  Call call;             // of kCall
  uint64_t address = 0;  // of device memory, of an upload or download
  Bytes content;         // the bytes of an upload or download
};

struct RecordedIteration {
  std::vector<RecordedCall> calls;
};

struct Range {
  uint64_t base = 0;
  uint64_t bytes = 0;
};

struct Recording {
  std::vector<Image> images;
  std::vector<Call> setup;
  std::vector<Block> blocks;     // alive before the first iteration, with content; disjoint
  std::vector<Range> allocated;  // by the program during the first iteration; may overlap
  std::vector<RecordedIteration> iterations;
};

// False: `why` is a sentence. REQUIRES: one iteration at least; bodies that the client's codec
// made.
bool MakeFunction(Recording recording, Function* function, std::string* why);

}  // namespace functions
