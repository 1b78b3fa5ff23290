// `laneway model show FILE`: what a model's file holds, and what of it would be refused
// (serve/llm/model/summary.h). Asks no daemon. Thread safety: main().
#pragma once

#include "cli/request.h"
#include "serve/llm/model/summary.h"

namespace cli {

// 1: the file cannot be read, or would not be served.
int ShowModel(const Request& request);

std::string ModelText(const serve::llm::ModelSummary& model);
std::string ModelJson(const serve::llm::ModelSummary& model);

}  // namespace cli
