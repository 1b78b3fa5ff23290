#include "ipc/accepts_operands.h"

#include <algorithm>
#include <vector>

namespace ipc {
namespace {

template <class T>
T ValueAt(Values values, size_t index) {
  T value;
  std::memcpy(&value, values[index], sizeof value);
  return value;
}

cudaDataType TypeAt(std::span<const Param> params, Values values, size_t index) {
  return static_cast<cudaDataType>(IntegerOf(params[index], values[index]));
}

class CallNumbers final : public blas::Numbers {
 public:
  CallNumbers(std::span<const Param> params, Values values, const ScalarTag* tags)
      : params_(params), values_(values), tags_(tags) {}

  int64_t Integer(uint8_t parameter) const override {
    const Param& param = params_[parameter];
    return param.role.kind == RoleKind::kValue ? IntegerOf(param, values_[parameter]) : 0;
  }

  bool IsZero(uint8_t scalar) const override {
    if (params_[scalar].role.kind != RoleKind::kScalar || tags_[scalar] != ScalarTag::kValue)
      return false;
    const std::byte* const value = ValueAt<const std::byte*>(values_, scalar);
    return std::all_of(value, value + kScalarBytes,
                       [](std::byte byte) { return byte == std::byte{}; });
  }

  // Of an array of pointers: the array itself.
  blas::Region RegionOf(const blas::Family& family, const blas::Operand& operand) const {
    if (operand.array) {
      const int64_t count = Integer(operand.count);
      return blas::MatrixRegion(count, 1, count, sizeof(void*));
    }
    const size_t bytes = operand.type != blas::kNone
                             ? BytesOfDataType(TypeAt(params_, values_, operand.type))
                             : params_[operand.parameter].element;
    if (bytes == 0) return blas::MatrixRegion(1, 1, 1, 1);  // a type that nobody knows
    return blas::RegionOf(family, operand, static_cast<int64_t>(bytes), *this);
  }

 private:
  const std::span<const Param> params_;
  const Values values_;
  const ScalarTag* const tags_;
};

}  // namespace

const blas::Family* BlasFamilyOf(Op op) {
  if (LibraryOf(op) != Library::kCublas) return nullptr;
  using Families = std::vector<const blas::Family*>;
  static const Families* const families = [] {
    Families* const made = new Families;
    for (const Row& row : RowsOf(Library::kCublas))
      made->push_back(row.remote ? blas::FamilyOf(row.name) : nullptr);
    return made;
  }();
  return (*families)[IndexOf(op)];
}

bool AcceptsOperands(const blas::Family* family, std::span<const Param> params, Values values,
                     const ScalarTag* tags, Session& session) {
  for (size_t i = 0; i < params.size(); ++i) {
    if (params[i].role.rule != LengthRule::kLayout) continue;
    const uint64_t address = ValueAt<uint64_t>(values, i);
    void* const layout = ValueAt<void*>(values, params[i].role.length[0]);
    if (address != 0 && !session.AcceptsMatrix(address, layout)) return false;
  }
  if (family == nullptr) return true;
  const CallNumbers numbers(params, values, tags);
  for (const blas::Operand& operand : family->all()) {
    const size_t i = operand.parameter;
    if (params[i].role.kind == RoleKind::kScalar) continue;  // its tag says where it lies
    const uint64_t address = ValueAt<uint64_t>(values, i);
    if (operand.optional && address == 0) continue;
    const auto accepts = [&session](uint64_t from, uint64_t bytes) {
      return session.Accepts(from, bytes);
    };
    if (!blas::Reaches(numbers.RegionOf(*family, operand), address, accepts)) return false;
  }
  return true;
}

uint64_t DeviceScalarBytes(std::span<const Param> params, size_t index, Values values) {
  const Role& role = params[index].role;
  size_t bytes = params[index].bytes;
  if (role.rule == LengthRule::kDataType)
    bytes = BytesOfDataType(TypeAt(params, values, role.length[0]));
  if (role.rule == LengthRule::kCompute) {
    const int64_t compute = IntegerOf(params[role.length[0]], values[role.length[0]]);
    bytes = BytesOfScale(static_cast<cublasComputeType_t>(compute),
                         TypeAt(params, values, role.length[1]));
  }
  return std::max<size_t>(bytes, 1);
}

}  // namespace ipc
