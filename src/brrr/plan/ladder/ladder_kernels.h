// The rungs between one boxed multiplication and a tuned matrix product, each one idea better than the one below.
// C = A B for square row-major f32 matrices. Only `simd`, `wide_simd` and `threaded` use vectors: the others are
// compiled without, so that the ladder shows what each idea alone is worth.
#pragma once

#include <cstdint>
#include <span>

namespace brrr::plan::ladder {

struct Matrices {
  const float *a, *b;
  float* c;
  int64_t n;  // a multiple of 48
};

// `count` multiplications of numbers on the heap through virtual calls, a new one for every result.
double boxed_products(int64_t count);

void naive(const Matrices& m);           // i j k: B is walked down its columns
void loop_order(const Matrices& m);      // i k j: every array along its rows
void register_block(const Matrices& m);  // 4 x 4 results stay in registers along all of k
void wide_block(const Matrices& m);      // 6 x 8 of them: more than there are registers
void packed(const Matrices& m);          // B copied into panels that are read in order
void tiled(const Matrices& m);           // and k in pieces whose panels stay in the cache
bool has_simd();                         // AVX2 and fused multiply-add
void simd(const Matrices& m);            // the same with vectors, 6 x 16
bool has_wide_simd();                    // AVX-512
void wide_simd(const Matrices& m);       // vectors twice as wide, 8 x 48
void threaded(const Matrices& m);        // the widest of both, rows dealt out to all threads

}  // namespace brrr::plan::ladder
