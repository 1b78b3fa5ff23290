// laneway(1), for man: what the command says of itself. Thread safety: stateless.
#pragma once

#include <string>

namespace cli {

std::string ManualPage();

}  // namespace cli
