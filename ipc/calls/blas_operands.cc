#include "ipc/calls/blas_operands.h"

#include <algorithm>
#include <iterator>

namespace ipc::blas {
namespace {

constexpr std::array<uint8_t, 2> Needs() { return {kNone, kNone}; }
constexpr std::array<uint8_t, 2> Needs(uint8_t one) { return {one, kNone}; }
constexpr std::array<uint8_t, 2> Needs(uint8_t one, uint8_t two) { return {one, two}; }

#define FAMILY(name, needs, ...) Family{#name, Needs needs, {__VA_ARGS__}},
constexpr Family kFamilies[] = {
#include "ipc/calls/blas_operands.inc"
};
#undef FAMILY

// What stands between cublas and the family: the types of the elements.
constexpr std::string_view kTypeLetters[] = {"",   "S",  "D",   "C",   "Z",   "H",
                                             "Cs", "Zd", "Sc",  "Dz",  "Is",  "Id",
                                             "Ic", "Iz", "HSH", "HSS", "TST", "TSS"};

std::string_view Without(std::string_view text, std::string_view suffix) {
  if (text.ends_with(suffix)) text.remove_suffix(suffix.size());
  return text;
}

// Sums and products that say when they have left the range of addresses.
class Wide {
 public:
  Wide(int64_t value) : value_(value) {}
  Wide operator+(Wide other) const { return Checked(value_ + other.value_, other); }
  Wide operator-(Wide other) const { return Checked(value_ - other.value_, other); }
  Wide operator*(Wide other) const { return Checked(value_ * other.value_, other); }
  bool fits() const { return fits_; }
  int64_t value() const { return static_cast<int64_t>(value_); }

 private:
  using Integer = __int128;
  static constexpr Integer kMax = Integer{1} << 61;

  Wide Checked(Integer value, const Wide& other) const {
    Wide result(0);
    result.fits_ = fits_ && other.fits_ && value < kMax && value > -kMax;
    if (result.fits_) result.value_ = value;
    return result;
  }

  Integer value_;
  bool fits_ = value_ < kMax && value_ > -kMax;
};

struct Extent {
  Wide begin{0}, end{0};  // in elements
  Wide piece{0}, step{0}, pieces{1};
};

// `count` pieces, `step` elements from one to the next.
Extent Apart(int64_t piece, int64_t count, int64_t step) {
  if (piece <= 0 || count <= 0) return {};
  return {0, Wide(count - 1) * Wide(step) + Wide(piece), piece, step, count};
}

// In bytes, and `batch` times.
Region Place(const Extent& extent, const Wide& bytes, int64_t batch, int64_t stride) {
  Region region;
  const Wide begin = extent.begin * bytes, end = extent.end * bytes, piece = extent.piece * bytes,
             step = extent.step * bytes;
  const Wide batch_step = Wide(stride) * bytes, reach = (Wide(batch) - 1) * batch_step + end;
  if (batch <= 0 || (end.fits() && begin.fits() && begin.value() == end.value())) return region;
  region.countable = begin.fits() && end.fits() && piece.fits() && step.fits() &&
                     extent.pieces.fits() && batch_step.fits() && reach.fits() &&
                     begin.value() < end.value();
  if (!region.countable) return region;
  region.begin = begin.value();
  region.end = end.value();
  region.piece_bytes = piece.value();
  region.piece_step = step.value();
  region.pieces = extent.pieces.value();
  region.batch_step = batch_step.value();
  region.batch = batch;
  return region;
}

// A leading dimension below 1, which the library refuses, leads nowhere.
class Measure {
 public:
  Measure(const Operand& operand, const Numbers& numbers) : operand_(operand), numbers_(numbers) {}

  Extent Get() const {
    switch (operand_.shape) {
      case Shape::kNothing:
        return {};
      case Shape::kElements:
        return Row(Wide(Rows()) * Wide(Repeats()));
      case Shape::kSmallest:
        return Row(Wide(std::min(Rows(), Columns())));
      case Shape::kPacked:
        return Row(Wide(Half(Rows())));
      case Shape::kUpVector:
        return Step() <= 0 ? Extent{} : Apart(1, Rows(), Step());
      case Shape::kVector:
        return Apart(1, Rows(), Step() < 0 ? -Step() : Step());
      case Shape::kMatrix:
        return Step() < 1 ? Extent{} : Apart(Rows(), Columns(), Step());
      case Shape::kBand:
        return GeneralBand();
      case Shape::kTriangularBand:
        return OneSidedBand();
    }
    return {};
  }

 private:
  // Negative numbers, which the library refuses, count as none.
  int64_t Number(uint8_t parameter) const {
    return parameter == kNone ? 1 : std::max<int64_t>(numbers_.Integer(parameter), 0);
  }
  int64_t Of(const Dim& dim) const {
    const bool second = dim.chosen_by != kNone && numbers_.Integer(dim.chosen_by) != 0;
    return Number(second ? dim.second : dim.first);
  }
  int64_t Rows() const { return Of(operand_.rows); }
  int64_t Columns() const { return Of(operand_.columns); }
  int64_t Repeats() const {
    return operand_.array || operand_.stride != kNone ? 1 : Number(operand_.count);
  }
  int64_t Step() const {
    return std::clamp(numbers_.Integer(operand_.step), -INT64_MAX, INT64_MAX);
  }
  static int64_t Half(int64_t n) {
    constexpr int64_t kMost = int64_t{1} << 31;
    return n > kMost ? INT64_MAX : n * (n + 1) / 2;
  }

  static Extent Row(Wide elements) { return {0, elements, elements, 0, 1}; }

  // Column j holds element (i, j) at j * ld + upper - j + i, for i from j - upper to j + lower.
  Extent GeneralBand() const {
    const int64_t m = Rows(), n = Columns();
    const int64_t lower = Number(operand_.lower), upper = Number(operand_.upper);
    if (m == 0 || n == 0 || Step() < 1) return {};
    const Wide beyond = Wide(m) + Wide(upper);  // columns from here on have no element
    const int64_t last = beyond.fits() ? std::min(n, beyond.value()) - 1 : n - 1;
    const Wide below = Wide(last) + Wide(lower) + Wide(1);
    const Wide rows = below.fits() ? Wide(std::min(m, below.value())) : Wide(m);
    return {upper, Wide(last) * Wide(Step()) + Wide(upper) - Wide(last) + rows,
            Wide(lower) + Wide(upper) + Wide(1), Step(), Wide(last) + Wide(1)};
  }

  // The diagonal is the last row of an upper band, the first of a lower one.
  Extent OneSidedBand() const {
    const int64_t n = Rows(), diagonals = Number(operand_.lower);
    if (n == 0 || Step() < 1) return {};
    const bool is_upper = numbers_.Integer(operand_.upper) != 0;
    const Wide before(is_upper ? diagonals : 0);
    return {before, Wide(n - 1) * Wide(Step()) + before + Wide(1), Wide(diagonals) + Wide(1),
            Step(), n};
  }

  const Operand& operand_;
  const Numbers& numbers_;
};

bool TouchesNothing(const Family& family, const Operand& operand, const Numbers& numbers) {
  for (const uint8_t needed : family.needs) {
    if (needed != kNone && numbers.Integer(needed) <= 0) return true;
  }
  return operand.unless_zero != kNone && numbers.IsZero(operand.unless_zero);
}

}  // namespace

const Family* FamilyOf(std::string_view function) {
  constexpr std::string_view kLibrary = "cublas";
  if (!function.starts_with(kLibrary)) return nullptr;
  function.remove_prefix(kLibrary.size());
  function = Without(Without(function, "_64"), "_v2");
  for (const Family& family : kFamilies) {
    if (!function.ends_with(family.name)) continue;
    const std::string_view letters = function.substr(0, function.size() - family.name.size());
    if (std::find(std::begin(kTypeLetters), std::end(kTypeLetters), letters) !=
        std::end(kTypeLetters)) {
      return &family;
    }
  }
  return nullptr;
}

Region RegionOf(const Family& family, const Operand& operand, int64_t element_bytes,
                const Numbers& numbers) {
  if (TouchesNothing(family, operand, numbers)) return {};
  const bool strided = operand.stride != kNone;
  return Place(Measure(operand, numbers).Get(), element_bytes,
               strided ? numbers.Integer(operand.count) : 1,
               strided ? numbers.Integer(operand.stride) : 0);
}

Region MatrixRegion(int64_t rows, int64_t columns, int64_t ld, int64_t element_bytes, int64_t batch,
                    int64_t stride) {
  return ld < 1 ? Region{} : Place(Apart(rows, columns, ld), element_bytes, batch, stride);
}

}  // namespace ipc::blas
