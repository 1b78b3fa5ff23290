// Holds the instruction table against the interpreter: whatever Parse() admits must have semantics.
// Every row is written out with all its types and modes; a combination that the parser refuses is
// no instruction, any other must translate.
#include <gtest/gtest.h>

#include <set>

#include "softgpu/exec/code.h"
#include "softgpu/exec/handlers.h"
#include "softgpu/ptx/instruction_table.h"

namespace softgpu::testing {
namespace {

using ptx::Row;

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

// Modifier words to try for each class that a row allows, one at a time.
std::vector<std::vector<std::string>> ModifierChoices(uint64_t classes) {
  const std::pair<uint64_t, const char*> kChoices[] = {
      {ptx::kmRounding, ". rn rz rm rp"},
      {ptx::kmIntegral, ". rna rni rzi"},
      {ptx::kmFinite, ". satfinite"},
      {ptx::kmWide, ". wide"},
      {ptx::kmFull, ". full"},
      {ptx::kmFtz, ". ftz"},
      {ptx::kmSat, ". sat"},
      {ptx::kmCarry, ". cc"},
      {ptx::kmMulMode, ". lo hi"},
      {ptx::kmRelu, ". relu"},
      {ptx::kmNan, ". NaN"},
      {ptx::kmApprox, ". approx"},
      {ptx::kmShiftAmount, ". shiftamt"},
      {ptx::kmTest, "finite infinite number notanumber normal subnormal"},
      {ptx::kmCompare, "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan"},
      {ptx::kmCombine, ". and"},
      {ptx::kmShf, "l r"},
      {ptx::kmPrmt, ". f4e b4e rc8 ecl ecr rc16"},
      {ptx::kmSpace, ". global shared local"},
      {ptx::kmVector, ". v2 v4 v8"},
      {ptx::kmClamp, "clamp wrap"},
      {ptx::kmXorsign, ". xorsign.abs"},
      {ptx::kmCluster, ". arrive wait"},
      {ptx::kmArrive, ". noComplete expect_tx"},
      {ptx::kmVideo, ". add min"},
      {ptx::kmVideoSum, ". add"},
      {ptx::kmVmad, ". po shr7"},
      {ptx::kmAtom, "and or xor add inc dec min max cas exch"},
      {ptx::kmShfl, "up down bfly idx"},
      {ptx::kmVote, "all any uni ballot"},
      {ptx::kmMma, ". x1 m8n8.trans"},
  };
  std::vector<std::vector<std::string>> choices;
  for (const auto& [modifier_class, words] : kChoices) {
    if ((classes & modifier_class) != 0) choices.push_back(Split(words, ' '));
  }
  return choices;
}

std::string Register(uint32_t bits, int number) {
  const char* prefix = bits == 1                 ? "%p"
                       : bits == 8 || bits == 16 ? "%h"
                       : bits == 32              ? "%r"
                       : bits == 128             ? "%o"
                                                 : "%l";
  return prefix + std::to_string(number);
}

// Operands that fit the signature, or empty when this row has a form of its own.
std::string OperandsFor(const Row& row, uint32_t bits, uint32_t bits2, bool wide, int vector,
                        bool optional, bool combined) {
  std::vector<std::string> operands;
  bool inside = false;
  int number = 1;
  for (char letter : row.signature) {
    if (letter == '[' || letter == ']') inside = letter == '[';
    if (inside && letter != '[' && !optional && !combined) continue;
    switch (letter) {
      case 'T':
      case 'R':
      case 'Z':
        operands.push_back(Register(bits, number++));
        break;
      case 'W':
        operands.push_back(Register(wide ? bits * 2 : bits, number++));
        break;
      case 'S':
      case 'Y':
        operands.push_back(Register(bits2, number++));
        break;
      case 'u':
        operands.push_back(Register(32, number++));
        break;
      case 'q':
        operands.push_back(Register(64, number++));
        break;
      case 'p':
      case 'P':
        operands.push_back(Register(1, number++));
        break;
      case 'i':
        operands.push_back("150");
        break;
      case 'A':
        operands.push_back("[%l7+16]");
        break;
      case 'b':
        operands.push_back(Register(32, number++));
        break;
      case 'E':
      case 'V': {
        std::string list;
        for (int k = 0; k < vector; ++k) list += (k == 0 ? "" : ", ") + Register(bits, number++);
        operands.push_back(vector == 1 ? list : "{" + list + "}");
        break;
      }
      case 'x':
      case 'M':
      case '*':
        return {};
      default:
        break;
    }
  }
  std::string text;
  for (const std::string& operand : operands) text += (text.empty() ? " " : ", ") + operand;
  return text;
}

bool HasSemantics(const exec::KernelCode& code) {
  for (const exec::Inst& inst : code.functions[0]->code) {
    if (inst.run == exec::Unimplemented || inst.inner == exec::Unimplemented) return false;
  }
  return true;
}

// True when the parser admits the line; then it must have semantics.
bool Try(const std::string& line, std::set<std::string>* missing) {
  const std::string text =
      ".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k() {\n.reg .pred %p<20>;\n"
      ".reg .b16 %h<20>;\n.reg .b32 %r<20>;\n.reg .b64 %l<20>;\n.reg .b128 %o<20>;\n" +
      line + ";\nret;\n}\n";
  std::string log;
  const std::shared_ptr<const PtxModule> module = PtxModule::Parse(text, &log);
  if (module == nullptr) return false;
  const auto& kernel = static_cast<const ptx::KernelImpl&>(*module->kernels()[0]);
  if (!HasSemantics(*exec::Translate(kernel))) missing->insert(line);
  return true;
}

TEST(InstructionTable, EveryAdmittedInstructionHasSemantics) {
  std::set<std::string> missing;
  int admitted = 0;
  for (const Row& row : ptx::Rows()) {
    int of_row = 0;
    bool own_form = false;
    const std::vector<std::string> lists = Split(row.types, '/');
    const std::vector<std::string> types =
        lists.empty() ? std::vector<std::string>{""} : Split(lists[0], ' ');
    const std::vector<std::string> types2 =
        lists.size() < 2 ? std::vector<std::string>{""} : Split(lists[1], ' ');
    std::vector<std::string> thirds = {""};
    if (lists.size() == 3) thirds.push_back("." + Split(lists[2], ' ')[0]);
    const std::vector<std::vector<std::string>> choices = ModifierChoices(row.modifiers);
    size_t combinations = 1;
    for (const std::vector<std::string>& words : choices) combinations *= words.size();
    for (size_t c = 0; c < combinations; ++c) {
      std::string modifiers;
      int vector = 1;
      bool wide = false, swaps = false, combined = false;
      size_t rest = c;
      for (const std::vector<std::string>& words : choices) {
        const std::string& word = words[rest % words.size()];
        rest /= words.size();
        if (word != ".") modifiers += "." + word;
        if (word == "v2" || word == "v4" || word == "v8") vector = word[1] - '0';
        wide = wide || word == "wide";
        swaps = swaps || word == "cas";
        combined = combined || (word == "and" && (row.modifiers & ptx::kmCombine) != 0);
      }
      for (const std::string& type : types) {
        for (const std::string& type2 : types2) {
          const uint32_t bits = ptx::Bits(ptx::TypeFromName(type));
          const uint32_t bits2 = ptx::Bits(ptx::TypeFromName(type2));
          const bool pair =
              row.op == ptx::Op::kCvt && bits == 32 && bits2 == 32 && type.find("x2") != type.npos;
          const std::string operands =
              OperandsFor(row, bits, bits2, wide, vector, swaps || pair, combined);
          own_form = own_form || operands.empty();
          for (const std::string& third : thirds) {
            const std::string line = std::string(row.name) + modifiers +
                                     (type.empty() ? "" : "." + type) +
                                     (type2.empty() ? "" : "." + type2) + third + operands;
            if (!operands.empty() || row.signature == "=") of_row += Try(line, &missing);
          }
        }
      }
    }
    EXPECT_TRUE(of_row > 0 || own_form) << row.name << ": the parser admits no form of it";
    admitted += of_row;
  }
  std::string list;
  for (const std::string& line : missing) list += line + "\n";
  EXPECT_TRUE(missing.empty()) << missing.size() << " instructions lack semantics:\n" << list;
  RecordProperty("admitted", admitted);
  EXPECT_GT(admitted, 3000);
}

}  // namespace
}  // namespace softgpu::testing
