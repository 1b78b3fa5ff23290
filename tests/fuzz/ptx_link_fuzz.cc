// PTX texts to be joined, cut apart at 0xFF bytes: any texts join or are refused with a sentence,
// and what they join to is text of which a linker can read the symbols.
#include <algorithm>
#include <cassert>
#include <cstdint>
#include <string>
#include <string_view>

#include "softgpu/ptx/link.h"
#include "softgpu/ptx/module.h"

namespace {

using softgpu::ptx::Link;

// The joined text; empty when the texts do not join.
std::string Join(std::string_view texts) {
  Link link;
  Link::Outcome outcome = Link::Outcome::kOk;
  for (int number = 1; outcome == Link::Outcome::kOk && !texts.empty(); ++number) {
    const size_t end = std::min(texts.find('\xff'), texts.size());
    outcome = link.Add(std::string(texts.substr(0, end)), std::to_string(number));
    texts.remove_prefix(std::min(end + 1, texts.size()));
  }
  std::string joined;
  if (outcome == Link::Outcome::kOk && !link.empty()) outcome = link.Finish(&joined);
  assert(outcome == Link::Outcome::kOk || !link.error().empty());
  return outcome == Link::Outcome::kOk ? joined : std::string();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string joined = Join({reinterpret_cast<const char*>(data), size});
  if (joined.empty()) return 0;
  std::string log;
  softgpu::PtxModule::Parse(joined, &log);
  Link link;
  assert(link.Add(joined, "joined") != Link::Outcome::kBadText);
  return 0;
}
