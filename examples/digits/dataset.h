// The handwritten digits of examples/data: 64 pixels in [0, 1] and a label, split into training and
// test rows.
#pragma once

#include <string>
#include <vector>

struct Digits {
  static constexpr int kPixels = 64;
  static constexpr int kClasses = 10;

  std::vector<float> images;  // row-major, kPixels per row
  std::vector<int> labels;
  int rows() const { return static_cast<int>(labels.size()); }
};

struct Dataset {
  Digits train, test;  // every fifth row of the file tests, the rest trains
};

// Reads a gzip-compressed or plain CSV file; prints what is wrong and exits with code 1 when it
// can't.
Dataset ReadDigits(const std::string& path);

// Where the file lies in the build tree and in an installation: ../share/laneway/data beside bin/.
std::string DefaultDigitsPath();
