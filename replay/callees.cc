#include "replay/callees.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "ipc/calls/limits.h"

namespace replay {
namespace {

constexpr uint32_t kArgumentBytesMax = sizeof(LaunchShape) + ipc::limits::kKernelParamBytesMax;

bool HasName(OpKind kind) { return kind == OpKind::kKernel || kind == OpKind::kLibraryCall; }

// Of kinds whose arguments are always the same.
std::vector<Field> FixedFields(OpKind kind) {
  switch (kind) {
    case OpKind::kCopy:
      return {{0, 8}, {8, 8}, {16, 8}, {24, 8}, {32, 8}, {40, 8}};
    case OpKind::kUpload:
    case OpKind::kDownload:
      return {{0, 8}, {8, 8}, {16, 8}, {24, 8}};
    case OpKind::kFill:
      return {{0, 8}, {8, 8}, {16, 4}, {20, 4}, {24, 8}, {32, 8}};
    default:
      return {{0, 4}, {4, 4}};
  }
}

// A LaunchShape's.
std::vector<Field> ShapeFields() {
  std::vector<Field> fields;
  for (uint16_t at = 0; at < sizeof(LaunchShape); at += 4) fields.push_back({at, 4});
  return fields;
}

bool FieldsFit(const Callee& callee) {
  uint32_t end = 0;
  for (const Field& field : callee.fields) {
    if (field.bytes == 0 || field.offset < end) return false;
    end = uint32_t{field.offset} + field.bytes;
  }
  return end <= callee.argument_bytes;
}

bool BeginsWithShape(const Callee& callee) {
  const std::vector<Field> shape = ShapeFields();
  return callee.fields.size() >= shape.size() &&
         std::equal(shape.begin(), shape.end(), callee.fields.begin());
}

bool IsWellFormed(const Callee& callee) {
  if (static_cast<uint8_t>(callee.kind) >= kOpKinds) return false;
  if (callee.argument_bytes > kArgumentBytesMax || !FieldsFit(callee)) return false;
  if (!HasName(callee.kind)) return callee == CalleeOf(callee.kind);
  const unsigned most = ipc::limits::kRecordedNameBytesMax;
  if (callee.name.empty() || callee.name.size() > most || callee.attributes.size() > most)
    return false;
  if (callee.kind == OpKind::kKernel) return BeginsWithShape(callee);
  return callee.module == ModuleContent() && callee.attributes.empty();
}

void CutWords(uint32_t begin, uint32_t end, std::vector<Word>* words) {
  while (begin < end) {
    uint32_t bytes = 8;
    while (begin % bytes != 0 || end - begin < bytes) bytes /= 2;
    words->push_back({begin, bytes});
    begin += bytes;
  }
}

std::vector<Word> WordsOf(const Callee& callee) {
  std::vector<Word> words;
  uint32_t end = 0;
  for (const Field& field : callee.fields) {
    CutWords(end, field.offset, &words);  // padding, which a caller may have filled with anything
    end = uint32_t{field.offset} + field.bytes;
    CutWords(field.offset, end, &words);
  }
  CutWords(end, callee.argument_bytes, &words);
  return words;
}

}  // namespace

Callee KernelCallee(const ModuleContent& module, std::string name,
                    std::span<const Field> parameters, uint32_t parameter_bytes) {
  Callee callee;
  callee.module = module;
  callee.name = std::move(name);
  callee.argument_bytes = static_cast<uint32_t>(sizeof(LaunchShape)) + parameter_bytes;
  callee.fields = ShapeFields();
  for (const Field& field : parameters) {
    callee.fields.push_back(
        {static_cast<uint16_t>(field.offset + sizeof(LaunchShape)), field.bytes});
  }
  return callee;
}

Callee CalleeOf(OpKind kind) {
  assert(!HasName(kind));
  Callee callee;
  callee.kind = kind;
  callee.fields = FixedFields(kind);
  callee.argument_bytes = uint32_t{callee.fields.back().offset} + callee.fields.back().bytes;
  return callee;
}

std::optional<uint32_t> Callees::Intern(const Callee& callee) {
  const std::map<Callee, uint32_t>::iterator found = numbers_.find(callee);
  if (found != numbers_.end()) return found->second;
  if (known_.size() >= ipc::limits::kRecordedCalleesMax || !IsWellFormed(callee))
    return std::nullopt;
  const uint32_t number = static_cast<uint32_t>(known_.size());
  const std::map<Callee, uint32_t>::iterator added = numbers_.emplace(callee, number).first;
  known_.push_back({&added->first, WordsOf(callee)});
  return number;
}

}  // namespace replay
