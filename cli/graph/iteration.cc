#include "cli/graph/iteration.h"

#include <cstddef>

namespace graph {
namespace {

bool BeginsIteration(const Record& record) {
  const SentCall* const call = std::get_if<SentCall>(&record.what);
  return call != nullptr && call->begins_iteration;
}

}  // namespace

std::span<const Record> FirstWholeIteration(std::span<const Record> records) {
  size_t begin = records.size();  // of an iteration that is whole so far; the size: none
  for (size_t i = 0; i < records.size(); ++i) {
    if (i != 0 && records[i].number != records[i - 1].number + 1) begin = records.size();
    if (!BeginsIteration(records[i])) continue;
    if (begin < i) return records.subspan(begin, i - begin);
    begin = i;
  }
  return {};
}

}  // namespace graph
