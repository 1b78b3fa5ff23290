// A visitor of a variant out of one function per alternative: an alternative without one does not
// compile. Thread safety: that of the functions.
#pragma once

namespace ipc {

//     std::visit(Overloaded{[&](const Grant& grant) { ... }, [&](const Revoke&) { ... }}, message);
template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace ipc
