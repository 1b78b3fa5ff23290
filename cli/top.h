// `laneway top`: live figures on a terminal until q or Ctrl-C; once when standard output is none.
// Thread safety: main().
#pragma once

#include "cli/request.h"

namespace cli {

int Top(const Request& request);

}  // namespace cli
