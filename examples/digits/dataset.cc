#include "digits/dataset.h"

#include <limits.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdio>
#include <cstdlib>

[[noreturn]] static void Fail(const std::string& path, const char* what) {
  std::fprintf(stderr, "%s: %s\n", path.c_str(), what);
  std::exit(1);
}

static void AppendRow(const std::string& path, char* line, Digits* digits) {
  char* cursor = line;
  for (int i = 0; i <= Digits::kPixels; ++i) {
    char* end = nullptr;
    const long value = std::strtol(cursor, &end, 10);
    const bool is_label = i == Digits::kPixels;
    const long largest = is_label ? Digits::kClasses - 1 : 16;
    if (end == cursor || value < 0 || value > largest)
      Fail(path, "a row is not 64 pixels and a label");
    if (is_label) {
      digits->labels.push_back(static_cast<int>(value));
    } else {
      digits->images.push_back(static_cast<float>(value) / 16.0f);
    }
    cursor = *end == ',' ? end + 1 : end;
  }
}

Dataset ReadDigits(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) Fail(path, "cannot be opened (name the file with --data)");
  Dataset dataset;
  char line[1024];
  for (int row = 0; gzgets(file, line, sizeof(line)) != nullptr; ++row) {
    AppendRow(path, line, row % 5 == 0 ? &dataset.test : &dataset.train);
  }
  int error = Z_OK;
  gzerror(file, &error);
  gzclose(file);
  if (error != Z_OK && error != Z_STREAM_END) Fail(path, "is damaged");
  if (dataset.test.rows() == 0) Fail(path, "is empty");
  return dataset;
}

std::string DefaultDigitsPath() {
  char program[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof(program));
  std::string directory =
      length > 0 ? std::string(program, static_cast<size_t>(length)) : "./bin/program";
  for (int levels = 0; levels < 2; ++levels) directory.resize(directory.rfind('/'));
  return directory + "/share/laneway/data/digits.csv.gz";
}
