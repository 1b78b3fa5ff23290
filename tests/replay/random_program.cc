#include "tests/replay/random_program.h"

#include <cstring>
#include <string>

namespace replay::testing {

RandomProgram::RandomProgram(uint64_t seed, Callees* callees) : random_(seed), callees_(callees) {
  for (uint64_t i = 0; i < 3 + Below(8); ++i) {
    std::vector<Field> parameters;
    uint32_t end = 0;
    for (uint64_t k = Below(5); k > 0; --k) {
      const uint16_t bytes = static_cast<uint16_t>(uint64_t{1} << Below(6));
      const uint32_t unit = std::min<uint32_t>(bytes, 8);
      const uint16_t offset = static_cast<uint16_t>((end + unit - 1) / unit * unit);
      parameters.push_back({offset, bytes});
      end = uint32_t{offset} + bytes;
    }
    pool_.push_back(*callees->Intern(KernelCallee({i}, "k", parameters, end)));
  }
  for (const OpKind kind : {OpKind::kCopy, OpKind::kUpload, OpKind::kFill, OpKind::kEventRecord})
    pool_.push_back(*callees->Intern(CalleeOf(kind)));
  main_ = Block(0);
}

RandomProgram::Statement RandomProgram::Call() {
  Statement call;
  call.key = {pool_[Below(pool_.size())], static_cast<uint32_t>(Below(3)), Below(12) == 0};
  call.arguments.resize(callees_->at(call.key.callee).argument_bytes);
  for (std::byte& byte : call.arguments) byte = std::byte(Below(256));
  for (size_t i = 0; i < callees_->words(call.key.callee).size(); ++i) {
    const uint64_t chance = Below(16);
    call.changes.push_back(chance == 0   ? Change::kEachTime
                           : chance == 1 ? Change::kEachIteration
                                         : Change::kNever);
  }
  return call;
}

std::vector<RandomProgram::Statement> RandomProgram::Block(int depth) {
  std::vector<Statement> block;
  for (uint64_t n = 1 + Below(depth == 0 ? 12 : 5); n > 0; --n) {
    if (depth == 3 || Below(3) != 0) {
      block.push_back(Call());
      continue;
    }
    Statement inner;
    inner.block = Block(depth + 1);
    inner.times = 1 + Below(3);
    inner.more = Below(2);
    inner.grows = Below(4) == 0;
    if (Below(3) == 0) inner.percent = 50;
    if (Below(2) == 0) inner.otherwise = Block(depth + 1);
    block.push_back(std::move(inner));
  }
  return block;
}

void RandomProgram::RunCall(const Statement& call, uint64_t rare, OpStream* out) {
  std::vector<std::byte> arguments = call.arguments;
  const std::span<const Word> words = callees_->words(call.key.callee);
  for (size_t i = 0; i < words.size(); ++i) {
    uint64_t value = random_();
    if (call.changes[i] == Change::kEachIteration) value = iteration_;
    if (call.changes[i] != Change::kNever || Below(1000 * words.size()) < rare)
      std::memcpy(arguments.data() + words[i].offset, &value, words[i].bytes);
  }
  out->Add({call.key, arguments});
}

void RandomProgram::Run(const std::vector<Statement>& block, uint64_t rare, OpStream* out) {
  for (const Statement& statement : block) {
    if (Below(1000) < rare) RunCall(Call(), rare, out);
    if (Below(1000) < rare) return;
    if (!statement.changes.empty()) {
      RunCall(statement, rare, out);
      continue;
    }
    if (Below(100) >= statement.percent) {
      Run(statement.otherwise, rare, out);
      continue;
    }
    uint64_t times = statement.times;
    if (statement.more != 0) times += statement.grows ? iteration_ % 16 : Below(3);
    for (uint64_t i = 0; i < times && out->size() < 2000; ++i) Run(statement.block, rare, out);
  }
}

OpStream RandomProgram::Iteration(uint64_t rare) {
  OpStream ops;
  Run(main_, rare, &ops);
  ++iteration_;
  return ops;
}

}  // namespace replay::testing
