#include "replay/kernel_report.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "replay/kernel_access.h"
#include "replay/kernel_files.h"
#include "softgpu/ptx/ir.h"

namespace replay {
namespace {

std::vector<std::string> UseWords(uint8_t use) {
  std::vector<std::string> words;
  if ((use & kReads) != 0) words.push_back("reads");
  if ((use & kWrites) != 0) words.push_back("writes");
  if ((use & kUpdates) != 0) words.push_back("updates");
  return words;
}

std::string NameOf(const softgpu::PtxModule& module, const softgpu::Kernel& kernel,
                   const Origin& origin) {
  if (origin.kind == Origin::Kind::kVariable) return module.variables()[origin.index].name;
  const std::vector<softgpu::ParamInfo>& params = kernel.params();
  for (size_t k = 0; k < params.size(); ++k) {
    if (origin.index < params[k].offset || origin.index >= params[k].offset + params[k].bytes) {
      continue;
    }
    const uint32_t inside = origin.index - params[k].offset;
    return absl::StrCat("parameter ", k, inside == 0 ? "" : absl::StrCat(" + ", inside));
  }
  return absl::StrCat("byte ", origin.index, " of the parameters");
}

bool IsAddressIn(const Access& access, size_t origin) {
  const std::vector<OriginSet>& choices = access.address.alternatives();
  return std::any_of(choices.begin(), choices.end(),
                     [origin](OriginSet choice) { return (choice >> origin & 1) != 0; });
}

bool IsEquality(const Condition& a, const Condition& b) {
  return a.or_equal && b.or_equal && a.left == b.right && a.right == b.left;
}

// " where tid.x < p16": the threads that get there.
std::string TextOf(const std::vector<Condition>& conditions,
                   const std::vector<std::string>& texts) {
  std::string text;
  for (size_t i = 0; i < conditions.size(); ++i) {
    const Condition& each = conditions[i];
    const bool equals = i + 1 < conditions.size() && IsEquality(each, conditions[i + 1]);
    absl::StrAppend(&text, text.empty() ? " where " : " and ", texts[each.left],
                    equals ? " = " : (each.or_equal ? " <= " : " < "), texts[each.right]);
    i += equals ? 1 : 0;
  }
  return text;
}

// `texts`: of the kernel's expressions.
TouchReport ReportOf(const KernelAccess& kernel, const std::vector<std::string>& texts,
                     size_t origin, uint8_t* use) {
  TouchReport report;
  bool everywhere = false;
  for (const Access& access : kernel.accesses) {
    if (!IsAddressIn(access, origin)) continue;
    *use |= access.use;
    everywhere = everywhere || access.range == kNoTerm;
    if (everywhere) continue;
    std::string range = absl::StrCat(access.bytes, " bytes at ", texts[access.range],
                                     TextOf(access.conditions, texts));
    const auto found = std::find(report.ranges.begin(), report.ranges.end(), range);
    if (found == report.ranges.end()) report.ranges.push_back(std::move(range));
  }
  if (everywhere) report.ranges.clear();
  report.uses = UseWords(*use);
  report.escapes = (kernel.escapes >> origin & 1) != 0;
  return report;
}

KernelReport ReportOf(const softgpu::PtxModule& module, const softgpu::Kernel& kernel) {
  const KernelAccess access = Analyse(static_cast<const softgpu::ptx::KernelImpl&>(kernel));
  KernelReport report = {.name = kernel.name(), .reason = access.unknown, .touches = {}};
  if (!report.reason.empty()) return report;
  const std::vector<std::string> texts = access.expressions.Texts();
  for (size_t k = 0; k < access.origins.size(); ++k) {
    uint8_t use = 0;
    TouchReport touch = ReportOf(access, texts, k, &use);
    if (use == 0) continue;
    const Origin& origin = access.origins[k];
    touch.name = NameOf(module, kernel, origin);
    touch.is_variable = origin.kind == Origin::Kind::kVariable;
    touch.offset = touch.is_variable ? 0 : origin.index;
    report.touches.push_back(std::move(touch));
  }
  std::sort(report.touches.begin(), report.touches.end(),
            [](const TouchReport& a, const TouchReport& b) {
              return std::pair(a.is_variable, a.offset) < std::pair(b.is_variable, b.offset);
            });
  return report;
}

void AddReport(const KernelFile& file, FileReport* report) {
  report->machine_code += file.machine_code;
  report->refused.insert(report->refused.end(), file.refused.begin(), file.refused.end());
  for (const auto& module : file.modules) {
    for (const auto& kernel : module->kernels())
      report->kernels.push_back(ReportOf(*module, *kernel));
  }
}

}  // namespace

absl::StatusOr<FileReport> ReportKernelsUntrusted(const std::string& path) {
  const absl::StatusOr<KernelFile> file = ReadKernelFileUntrusted(path);
  if (!file.ok()) return file.status();
  FileReport report;
  AddReport(*file, &report);
  return report;
}

void AddImageReportUntrusted(std::span<const std::byte> image, FileReport* report) {
  AddReport(ReadKernelImagesUntrusted(image), report);
}

std::string ReadableKernelName(const std::string& name) { return softgpu::ptx::ReadableName(name); }

}  // namespace replay
