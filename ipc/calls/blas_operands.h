// What each function of cuBLAS touches in device memory, as data: one row for each family of
// functions in blas_operands.inc. By these rows the worker refuses addresses that are not the
// session's, and the software GPU faults before it computes.
//
// An operand is a pointer parameter with a shape: how far from the pointer the first and the last
// touched byte lie, given the integers of the call. Parameters count from 0, the handle is 0.
// Thread safety: pure functions and constants.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace ipc::blas {

inline constexpr uint8_t kNone = 255;  // no such parameter

// A number of rows, columns or elements: a parameter, or one of two, as an operation or a side
// says. CUBLAS_OP_N and CUBLAS_SIDE_LEFT are 0 and choose the first.
struct Dim {
  uint8_t first = kNone, second = kNone, chosen_by = kNone;
  constexpr Dim() = default;
  constexpr Dim(int parameter) : first(static_cast<uint8_t>(parameter)) {}
  constexpr Dim(int chosen_by, int first, int second)
      : first(static_cast<uint8_t>(first)),
        second(static_cast<uint8_t>(second)),
        chosen_by(static_cast<uint8_t>(chosen_by)) {}
};

enum class Shape : uint8_t {
  kNothing,
  kElements,        // so many next to each other
  kSmallest,        // as many as the smaller of two numbers
  kVector,          // `step` apart, which may be negative: BLAS then starts at the far end
  kUpVector,        // the same, and nothing at all unless the step is positive
  kMatrix,          // columns `step` apart
  kBand,            // a general band matrix: lower and upper diagonals, columns `step` apart
  kTriangularBand,  // a triangular band of `lower` diagonals, of the triangle that `upper` names
  kPacked,          // one triangle, packed
};

struct Operand {
  uint8_t parameter = kNone;
  Shape shape = Shape::kNothing;
  Dim rows, columns;  // of vectors and elements: rows
  uint8_t step = kNone;
  uint8_t lower = kNone, upper = kNone;  // of bands
  uint8_t type = kNone;                  // the parameter with its cudaDataType; else by the C type
  uint8_t count = kNone;                 // of a batch
  uint8_t stride = kNone;                // from one of the batch to the next, in elements
  bool array = false;                    // the parameter points at `count` pointers
  bool optional = false;                 // may be null
  bool by_mode = false;                  // on the device only under device pointer mode
  uint8_t unless_zero = kNone;           // untouched when this scalar is zero

  constexpr Operand Of(int type_parameter) const {
    Operand result = *this;
    result.type = static_cast<uint8_t>(type_parameter);
    return result;
  }
  constexpr Operand Strided(int stride_parameter, int count_parameter) const {
    Operand result = *this;
    result.stride = static_cast<uint8_t>(stride_parameter);
    result.count = static_cast<uint8_t>(count_parameter);
    return result;
  }
  constexpr Operand Array(int count_parameter) const {
    Operand result = *this;
    result.array = true;
    result.count = static_cast<uint8_t>(count_parameter);
    return result;
  }
  // `count` times as many elements, without gaps.
  constexpr Operand Times(int count_parameter) const {
    Operand result = *this;
    result.count = static_cast<uint8_t>(count_parameter);
    return result;
  }
  constexpr Operand UnlessZero(int scalar) const {
    Operand result = *this;
    result.unless_zero = static_cast<uint8_t>(scalar);
    return result;
  }
  constexpr Operand Optional() const {
    Operand result = *this;
    result.optional = true;
    return result;
  }
};

constexpr Operand Make(Shape shape, int parameter, Dim rows, Dim columns, int step) {
  Operand operand;
  operand.parameter = static_cast<uint8_t>(parameter);
  operand.shape = shape;
  operand.rows = rows;
  operand.columns = columns;
  operand.step = static_cast<uint8_t>(step);
  return operand;
}
constexpr Operand Vector(int parameter, Dim n, int step) {
  return Make(Shape::kVector, parameter, n, {}, step);
}
constexpr Operand UpVector(int parameter, Dim n, int step) {
  return Make(Shape::kUpVector, parameter, n, {}, step);
}
constexpr Operand Matrix(int parameter, Dim rows, Dim columns, int step) {
  return Make(Shape::kMatrix, parameter, rows, columns, step);
}
constexpr Operand Packed(int parameter, Dim n) {
  return Make(Shape::kPacked, parameter, n, {}, kNone);
}
constexpr Operand Elements(int parameter, Dim n) {
  return Make(Shape::kElements, parameter, n, {}, kNone);
}
constexpr Operand Smallest(int parameter, Dim m, Dim n) {
  return Make(Shape::kSmallest, parameter, m, n, kNone);
}
// One scalar that a call reads or writes: by the pointer mode.
constexpr Operand One(int parameter) {
  Operand operand = Make(Shape::kElements, parameter, {}, {}, kNone);
  operand.by_mode = true;
  return operand;
}
constexpr Operand Band(int parameter, Dim m, Dim n, int lower, int upper, int step) {
  Operand operand = Make(Shape::kBand, parameter, m, n, step);
  operand.lower = static_cast<uint8_t>(lower);
  operand.upper = static_cast<uint8_t>(upper);
  return operand;
}
constexpr Operand TriangularBand(int parameter, Dim n, int diagonals, int uplo, int step) {
  Operand operand = Make(Shape::kTriangularBand, parameter, n, {}, step);
  operand.lower = static_cast<uint8_t>(diagonals);
  operand.upper = static_cast<uint8_t>(uplo);
  return operand;
}

inline constexpr size_t kOperandsMax = 6;

struct Family {
  std::string_view name;
  std::array<uint8_t, 2> needs;  // nothing is touched unless these numbers are positive
  std::array<Operand, kOperandsMax> operands;

  std::span<const Operand> all() const {
    size_t count = 0;
    while (count < kOperandsMax && operands[count].shape != Shape::kNothing) ++count;
    return {operands.data(), count};
  }
};

// The family of a function by its name, as cublasSgemm_v2_64 is of gemm; null: none.
const Family* FamilyOf(std::string_view function);

// Where one operand of a call lies, in bytes from its pointer. Of an array of pointers: from each.
struct Region {
  bool countable = true;    // false: no address reaches so far
  int64_t begin = 0;        // the first touched byte of the first of a batch
  int64_t end = 0;          // one past its last; equal: it touches nothing
  int64_t piece_bytes = 0;  // what it consists of: `pieces` of so many bytes, piece_step apart,
  int64_t piece_step = 0;   // from begin 0 on; those that begin and end cut are shorter
  int64_t pieces = 0;
  int64_t batch_step = 0;
  int64_t batch = 1;

  bool empty() const { return countable && (begin == end || batch <= 0); }
};

// The integers of one call.
class Numbers {
 public:
  virtual ~Numbers() = default;
  virtual int64_t Integer(uint8_t parameter) const = 0;
  virtual bool IsZero(uint8_t scalar) const = 0;  // known to be
};

// element_bytes: of what the pointer, or each of its pointers, points at.
Region RegionOf(const Family& family, const Operand& operand, int64_t element_bytes,
                const Numbers& numbers);

// The same of a matrix, or a batch of them, that no row describes. Steps in elements; without a
// leading dimension of at least 1 it touches nothing, as no library takes it.
Region MatrixRegion(int64_t rows, int64_t columns, int64_t ld, int64_t element_bytes,
                    int64_t batch = 1, int64_t stride = 0);

// True when covers(address, bytes) for all that the region touches, seen from `address`: as a whole
// where there are no large gaps, else piece by piece. Too many pieces: no.
template <class Covers>
bool Reaches(const Region& region, uint64_t address, const Covers& covers);

inline constexpr int64_t kPiecesMax = 1 << 16;

template <class Covers>
bool CoversRange(uint64_t address, int64_t begin, int64_t end, const Covers& covers) {
  const uint64_t first = address + static_cast<uint64_t>(begin);
  const uint64_t last = address + static_cast<uint64_t>(end);
  const bool wraps = (begin < 0 ? first > address : first < address) || last < first;
  return !wraps && covers(first, static_cast<uint64_t>(end - begin));
}

template <class Covers>
bool Reaches(const Region& region, uint64_t address, const Covers& covers) {
  if (region.empty()) return true;
  if (!region.countable) return false;
  const int64_t last = region.batch_step * (region.batch - 1);
  const int64_t low = last < 0 ? last : 0, high = last < 0 ? 0 : last;
  if (CoversRange(address, region.begin + low, region.end + high, covers)) return true;
  if (region.batch > kPiecesMax || region.pieces > kPiecesMax / region.batch) return false;
  for (int64_t i = 0; i < region.batch; ++i) {
    const int64_t base = i * region.batch_step;
    for (int64_t j = 0; j < region.pieces; ++j) {
      int64_t from = j * region.piece_step, to = from + region.piece_bytes;
      if (from < region.begin) from = region.begin;
      if (to > region.end) to = region.end;
      if (from < to && !CoversRange(address, base + from, base + to, covers)) return false;
    }
  }
  return true;
}

}  // namespace ipc::blas
