// `laneway model show PATH`: what the files of a model hold, and what of them would be refused
// (serve/llm/model/summary.h). Asks no daemon. Thread safety: main().
#pragma once

#include "cli/request.h"
#include "serve/llm/model/summary.h"

namespace cli {

// 1: the model cannot be read, or would not be served.
int ShowModel(const Request& request);

std::string ModelText(const serve::llm::ModelSummary& model);
std::string ModelJson(const serve::llm::ModelSummary& model);

}  // namespace cli
