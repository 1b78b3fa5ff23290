// Where requests begin in what a client records of a program.
//
// A program's iterations are found without looking at what they are for. So a boundary may stand
// between a request's upload and its read-back, or an iteration may have several requests. A
// function takes a request and gives its answer: its calls begin with an upload, and end before the
// next upload that follows a read-back.
//
// Thread safety: pure.
#pragma once

#include <vector>

#include "functions/recording.h"

namespace functions {

// Iterations that follow each other, cut anew where requests begin, when one of them uploads after
// it has read back. Requests that are not whole are left out, and no more are returned than there
// were iterations. None: the calls of requests differ, or fewer than two requests are whole.
std::vector<RecordedIteration> CutAtRequests(std::vector<RecordedIteration> iterations);

}  // namespace functions
