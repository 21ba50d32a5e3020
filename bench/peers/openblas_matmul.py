#!/usr/bin/env python3
"""The products of bench/matmul_bench.cpp through OpenBLAS as brrr would call it: single-threaded, on slabs that depend
on the shape alone, one a thread at a time. Slabs of rows and slabs of columns, the faster counts.

Left alone, OpenBLAS 0.3.21 takes this kind of machine for a Prescott (SSE3) and is four times slower; it is told which
kernels to use."""
import ctypes
import os
from concurrent.futures import ThreadPoolExecutor

import numpy

from matmul_shapes import matmul_cases
from peer import median_ns, serve

THREADS = 2
ROW_MAJOR, PLAIN, TRANSPOSED = 101, 111, 112
os.environ.setdefault("OPENBLAS_CORETYPE", "SkylakeX")
blas = ctypes.CDLL("libopenblas.so.0")
blas.openblas_get_config.restype = ctypes.c_char_p
blas.openblas_set_num_threads(1)
pool = ThreadPoolExecutor(THREADS)


def sgemm(a, b, c):
    """c = a b for matrices of which a and b may be transposed views."""
    def operand(x):
        transposed = x.strides[1] != 4
        return (TRANSPOSED if transposed else PLAIN), x.ctypes.data, x.strides[1 if transposed else 0] // 4
    order_a, data_a, lead_a = operand(a)
    order_b, data_b, lead_b = operand(b)
    (m, k), n = a.shape, b.shape[1]
    blas.cblas_sgemm(ROW_MAJOR, order_a, order_b, m, n, k, ctypes.c_float(1), ctypes.c_void_p(data_a), lead_a,
                     ctypes.c_void_p(data_b), lead_b, ctypes.c_float(0), ctypes.c_void_p(c.ctypes.data), c.strides[0] // 4)


def halves(size):
    return [slice(i * size // THREADS, (i + 1) * size // THREADS) for i in range(THREADS)]


def by_rows(a, b, c):
    list(pool.map(lambda rows: sgemm(a[rows], b, c[rows]), halves(a.shape[0])))


def by_columns(a, b, c):
    list(pool.map(lambda columns: sgemm(a, b[:, columns], c[:, columns]), halves(b.shape[1])))


def product(rows, inner, columns, transpose_a=False, transpose_b=False):
    def time_it():
        random = numpy.random.default_rng(1)
        def make(m, n):
            return random.standard_normal((m, n), dtype=numpy.float32)
        a = make(inner, rows).T if transpose_a else make(rows, inner)
        b = make(columns, inner).T if transpose_b else make(inner, columns)
        c = numpy.empty((rows, columns), dtype=numpy.float32)
        by_rows(a, b, c)
        assert numpy.allclose(c[:2], a[:2] @ b, rtol=1e-3, atol=1e-2)
        return {"rows": median_ns(lambda: by_rows(a, b, c)), "columns": median_ns(lambda: by_columns(a, b, c))}
    return time_it


def main():
    config = blas.openblas_get_config().decode().split()
    serve(f"{config[0]} {config[1]}", THREADS, "as packaged", matmul_cases(product))


if __name__ == "__main__":
    main()
