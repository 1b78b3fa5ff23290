#include "tests/ipc/calls/blas_loops.h"

#include <algorithm>

namespace ipc::blas {

int64_t Draw(std::mt19937* random, int64_t least, int64_t most) {
  return std::uniform_int_distribution<int64_t>(least, most)(*random);
}

namespace {

// --- the definitions

void Vector(Touched* touched, int parameter, int64_t n, int64_t step) {
  for (int64_t i = 0; i < n; ++i)
    (*touched)[parameter].insert(step < 0 ? (i + 1 - n) * step : i * step);
}

void Matrix(Touched* touched, int parameter, int64_t rows, int64_t columns, int64_t ld,
            int64_t from = 0) {
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i) (*touched)[parameter].insert(from + i + j * ld);
}

// One triangle, with its diagonal.
void Triangle(Touched* touched, int parameter, bool upper, int64_t n, int64_t ld) {
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < n; ++i)
      if (upper ? i <= j : i >= j) (*touched)[parameter].insert(i + j * ld);
}

void Packed(Touched* touched, int parameter, bool upper, int64_t n) {
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < n; ++i) {
      if (upper ? i > j : i < j) continue;
      (*touched)[parameter].insert(upper ? i + j * (j + 1) / 2 : i + (2 * n - j - 1) * j / 2);
    }
}

void Band(Touched* touched, int parameter, int64_t m, int64_t n, int64_t lower, int64_t upper,
          int64_t ld) {
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < m; ++i)
      if (i >= j - upper && i <= j + lower) (*touched)[parameter].insert(upper + i - j + j * ld);
}

// --- arguments

int64_t Ld(std::mt19937* random, int64_t rows) {
  return std::max<int64_t>(rows, 1) + Draw(random, 0, 3);
}
int64_t Step(std::mt19937* random) {
  const int64_t step = Draw(random, 1, 4);
  return Draw(random, 0, 1) == 0 ? step : -step;
}
void DrawAll(std::mt19937* random, Given* given, std::initializer_list<int> sizes) {
  for (const int parameter : sizes) (*given)[parameter] = Draw(random, 0, 6);
}
void DrawSteps(std::mt19937* random, Given* given, std::initializer_list<int> steps) {
  for (const int parameter : steps) (*given)[parameter] = Step(random);
}
void DrawChoices(std::mt19937* random, Given* given, std::initializer_list<int> choices) {
  for (const int parameter : choices) (*given)[parameter] = Draw(random, 0, 1);
}

const Loop kLoops[] = {
    {"cublasScopy_v2",
     [](std::mt19937* r, Given* g) {
       DrawAll(r, g, {1});
       DrawSteps(r, g, {3, 5});
     },
     [](const Given& g, Touched* t) {
       Vector(t, 2, g(1), g(3));
       Vector(t, 4, g(1), g(5));
     }},
    {"cublasDasum_v2_64",
     [](std::mt19937* r, Given* g) {
       DrawAll(r, g, {1});
       (*g)[3] = Draw(r, -3, 3);
     },
     [](const Given& g, Touched* t) {
       if (g(3) > 0) Vector(t, 2, g(1), g(3));
       (*t)[4].insert(0);
     }},
    {"cublasAxpyEx",
     [](std::mt19937* r, Given* g) {
       DrawAll(r, g, {1});
       DrawSteps(r, g, {6, 9});
       if (Draw(r, 0, 1) == 0) g->zeros.insert(2);
     },
     [](const Given& g, Touched* t) {
       if (g(1) > 0) (*t)[2].insert(0);
       if (g.IsZero(2)) return;
       Vector(t, 4, g(1), g(6));
       Vector(t, 7, g(1), g(9));
     }},
    {"cublasCgemv_v2",
     [](std::mt19937* r, Given* g) {
       DrawAll(r, g, {2, 3});
       DrawChoices(r, g, {1});
       DrawSteps(r, g, {8, 11});
       (*g)[6] = Ld(r, (*g)[2]);
     },
     [](const Given& g, Touched* t) {
       const int64_t m = g(2), n = g(3);
       if (m == 0 || n == 0) return;
       (*t)[4].insert(0);
       (*t)[9].insert(0);
       Matrix(t, 5, m, n, g(6));
       Vector(t, 7, g(1) == 0 ? n : m, g(8));
       Vector(t, 10, g(1) == 0 ? m : n, g(11));
     }},
    {"cublasZgbmv_v2",
     [](std::mt19937* r, Given* g) {
       DrawAll(r, g, {2, 3, 4, 5});
       DrawChoices(r, g, {1});
       DrawSteps(r, g, {10, 13});
       (*g)[8] = (*g)[4] + (*g)[5] + 1 + Draw(r, 0, 2);
     },
     [](const Given& g, Touched* t) {
       const int64_t m = g(2), n = g(3);
       if (m == 0 || n == 0) return;
       (*t)[6].insert(0);
       (*t)[11].insert(0);
       Band(t, 7, m, n, g(4), g(5), g(8));
       Vector(t, 9, g(1) == 0 ? n : m, g(10));
       Vector(t, 12, g(1) == 0 ? m : n, g(13));
     }},
    {"cublasStrsv_v2",
     [](std::mt19937* r, Given* g) {
       DrawAll(r, g, {4});
       DrawChoices(r, g, {1, 2, 3});
       DrawSteps(r, g, {8});
       (*g)[6] = Ld(r, (*g)[4]);
     },
     [](const Given& g, Touched* t) {
       Triangle(t, 5, g(1) != 0, g(4), g(6));
       Vector(t, 7, g(4), g(8));
     }},
    {"cublasDtbmv_v2",
     [](std::mt19937* r, Given* g) {
       DrawAll(r, g, {4, 5});
       DrawChoices(r, g, {1, 2, 3});
       DrawSteps(r, g, {9});
       (*g)[7] = (*g)[5] + 1 + Draw(r, 0, 2);
     },
     [](const Given& g, Touched* t) {
       const bool upper = g(1) != 0;
       // The diagonal's row in the band: the last of the upper ones, the first of the lower.
       for (int64_t j = 0; j < g(4); ++j)
         for (int64_t i = 0; i < g(4); ++i) {
           const int64_t below = i - j;
           if (upper ? below > 0 || -below > g(5) : below < 0 || below > g(5)) continue;
           (*t)[6].insert((upper ? g(5) : 0) + below + j * g(7));
         }
       Vector(t, 8, g(4), g(9));
     }},
    {"cublasChpmv_v2_64",
     [](std::mt19937* r, Given* g) {
       DrawAll(r, g, {2});
       DrawChoices(r, g, {1});
       DrawSteps(r, g, {6, 9});
     },
     [](const Given& g, Touched* t) {
       if (g(2) == 0) return;
       (*t)[3].insert(0);
       (*t)[7].insert(0);
       Packed(t, 4, g(1) != 0, g(2));
       Vector(t, 5, g(2), g(6));
       Vector(t, 8, g(2), g(9));
     }},
    {"cublasZgerc_v2",
     [](std::mt19937* r, Given* g) {
       DrawAll(r, g, {1, 2});
       DrawSteps(r, g, {5, 7});
       (*g)[9] = Ld(r, (*g)[1]);
     },
     [](const Given& g, Touched* t) {
       if (g(1) == 0 || g(2) == 0) return;
       (*t)[3].insert(0);
       Vector(t, 4, g(1), g(5));
       Vector(t, 6, g(2), g(7));
       Matrix(t, 8, g(1), g(2), g(9));
     }},
    {"cublasHgemm",
     [](std::mt19937* r, Given* g) {
       DrawAll(r, g, {3, 4, 5});
       DrawChoices(r, g, {1, 2});
       (*g)[8] = Ld(r, (*g)[1] == 0 ? (*g)[3] : (*g)[5]);
       (*g)[10] = Ld(r, (*g)[2] == 0 ? (*g)[5] : (*g)[4]);
       (*g)[13] = Ld(r, (*g)[3]);
     },
     [](const Given& g, Touched* t) {
       const int64_t m = g(3), n = g(4), k = g(5);
       if (m == 0 || n == 0) return;
       (*t)[6].insert(0);
       (*t)[11].insert(0);
       for (int64_t i = 0; i < m; ++i)
         for (int64_t j = 0; j < n; ++j) {
           for (int64_t l = 0; l < k; ++l) {
             (*t)[7].insert(g(1) == 0 ? i + l * g(8) : l + i * g(8));
             (*t)[9].insert(g(2) == 0 ? l + j * g(10) : j + l * g(10));
           }
           (*t)[12].insert(i + j * g(13));
         }
     }},
    {"cublasGemmStridedBatchedEx",
     [](std::mt19937* r, Given* g) {
       DrawAll(r, g, {3, 4, 5, 20});
       DrawChoices(r, g, {1, 2});
       (*g)[9] = Ld(r, (*g)[1] == 0 ? (*g)[3] : (*g)[5]);
       (*g)[13] = Ld(r, (*g)[2] == 0 ? (*g)[5] : (*g)[4]);
       (*g)[18] = Ld(r, (*g)[3]);
       for (const int stride : {10, 14, 19}) (*g)[stride] = Draw(r, -60, 60);
     },
     [](const Given& g, Touched* t) {
       const int64_t m = g(3), n = g(4), k = g(5);
       if (m == 0 || n == 0) return;
       for (int64_t b = 0; b < g(20); ++b) {
         Matrix(t, 7, g(1) == 0 ? m : k, g(1) == 0 ? k : m, g(9), b * g(10));
         Matrix(t, 11, g(2) == 0 ? k : n, g(2) == 0 ? n : k, g(13), b * g(14));
         Matrix(t, 16, m, n, g(18), b * g(19));
       }
     }},
    {"cublasCherkx",
     [](std::mt19937* r, Given* g) {
       DrawAll(r, g, {3, 4});
       DrawChoices(r, g, {1, 2});
       (*g)[7] = Ld(r, (*g)[2] == 0 ? (*g)[3] : (*g)[4]);
       (*g)[9] = Ld(r, (*g)[2] == 0 ? (*g)[3] : (*g)[4]);
       (*g)[12] = Ld(r, (*g)[3]);
     },
     [](const Given& g, Touched* t) {
       const int64_t n = g(3), k = g(4);
       if (n == 0) return;
       (*t)[5].insert(0);
       (*t)[10].insert(0);
       Matrix(t, 6, g(2) == 0 ? n : k, g(2) == 0 ? k : n, g(7));
       Matrix(t, 8, g(2) == 0 ? n : k, g(2) == 0 ? k : n, g(9));
       Triangle(t, 11, g(1) != 0, n, g(12));
     }},
    {"cublasDsymm_v2",
     [](std::mt19937* r, Given* g) {
       DrawAll(r, g, {3, 4});
       DrawChoices(r, g, {1, 2});
       (*g)[7] = Ld(r, (*g)[1] == 0 ? (*g)[3] : (*g)[4]);
       (*g)[9] = Ld(r, (*g)[3]);
       (*g)[12] = Ld(r, (*g)[3]);
     },
     [](const Given& g, Touched* t) {
       if (g(3) == 0 || g(4) == 0) return;
       (*t)[5].insert(0);
       (*t)[10].insert(0);
       Triangle(t, 6, g(2) != 0, g(1) == 0 ? g(3) : g(4), g(7));
       Matrix(t, 8, g(3), g(4), g(9));
       Matrix(t, 11, g(3), g(4), g(12));
     }},
    {"cublasStrmm_v2",
     [](std::mt19937* r, Given* g) {
       DrawAll(r, g, {5, 6});
       DrawChoices(r, g, {1, 2, 3, 4});
       (*g)[9] = Ld(r, (*g)[1] == 0 ? (*g)[5] : (*g)[6]);
       (*g)[11] = Ld(r, (*g)[5]);
       (*g)[13] = Ld(r, (*g)[5]);
     },
     [](const Given& g, Touched* t) {
       if (g(5) == 0 || g(6) == 0) return;
       (*t)[7].insert(0);
       Triangle(t, 8, g(2) != 0, g(1) == 0 ? g(5) : g(6), g(9));
       Matrix(t, 10, g(5), g(6), g(11));
       Matrix(t, 12, g(5), g(6), g(13));
     }},
    {"cublasSgeam",
     [](std::mt19937* r, Given* g) {
       DrawAll(r, g, {3, 4});
       DrawChoices(r, g, {1, 2});
       (*g)[7] = Ld(r, (*g)[1] == 0 ? (*g)[3] : (*g)[4]);
       (*g)[10] = Ld(r, (*g)[2] == 0 ? (*g)[3] : (*g)[4]);
       (*g)[12] = Ld(r, (*g)[3]);
       if (Draw(r, 0, 1) == 0) g->zeros.insert(8);
     },
     [](const Given& g, Touched* t) {
       const int64_t m = g(3), n = g(4);
       if (m == 0 || n == 0) return;
       (*t)[5].insert(0);
       (*t)[8].insert(0);
       Matrix(t, 6, g(1) == 0 ? m : n, g(1) == 0 ? n : m, g(7));
       if (!g.IsZero(8)) Matrix(t, 9, g(2) == 0 ? m : n, g(2) == 0 ? n : m, g(10));
       Matrix(t, 11, m, n, g(12));
     }},
    {"cublasCdgmm",
     [](std::mt19937* r, Given* g) {
       DrawAll(r, g, {2, 3});
       DrawChoices(r, g, {1});
       DrawSteps(r, g, {7});
       (*g)[5] = Ld(r, (*g)[2]);
       (*g)[9] = Ld(r, (*g)[2]);
     },
     [](const Given& g, Touched* t) {
       if (g(2) == 0 || g(3) == 0) return;
       Matrix(t, 4, g(2), g(3), g(5));
       Vector(t, 6, g(1) == 0 ? g(2) : g(3), g(7));
       Matrix(t, 8, g(2), g(3), g(9));
     }},
    {"cublasDgetrfBatched",  // of the arrays: what each pointer leads to
     [](std::mt19937* r, Given* g) {
       DrawAll(r, g, {1, 6});
       (*g)[3] = Ld(r, (*g)[1]);
     },
     [](const Given& g, Touched* t) {
       Matrix(t, 2, g(1), g(1), g(3));
       for (int64_t b = 0; b < g(6); ++b)
         for (int64_t i = 0; i < g(1); ++i) (*t)[4].insert(b * g(1) + i);
       for (int64_t b = 0; b < g(6); ++b) (*t)[5].insert(b);
     }},
    {"cublasSgeqrfBatched",
     [](std::mt19937* r, Given* g) {
       DrawAll(r, g, {1, 2});
       (*g)[4] = Ld(r, (*g)[1]);
       (*g)[7] = 1;
     },
     [](const Given& g, Touched* t) {
       Matrix(t, 3, g(1), g(2), g(4));
       for (int64_t i = 0; i < std::min(g(1), g(2)); ++i) (*t)[5].insert(i);
     }},
};

}  // namespace

std::span<const Loop> Loops() { return kLoops; }

}  // namespace ipc::blas
