// `laneway why ID` and `laneway policy [NAME]`: what decides, in words. Thread safety: main().
#pragma once

#include "cli/request.h"

namespace cli {

int Why(const Request& request);
int Policy(const Request& request);

}  // namespace cli
