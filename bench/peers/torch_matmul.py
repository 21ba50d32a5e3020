#!/usr/bin/env python3
"""The products of bench/matmul_bench.cpp in PyTorch."""
import torch

from matmul_shapes import matmul_cases
from peer import median_ns, serve
from torch_peer import facts


def product(rows, inner, columns, transpose_a=False, transpose_b=False):
    def time_it():
        a = torch.randn(inner, rows).T if transpose_a else torch.randn(rows, inner)
        b = torch.randn(columns, inner).T if transpose_b else torch.randn(inner, columns)
        return {"eager": median_ns(lambda: a @ b)}
    return time_it


def main():
    serve(**facts(), cases=matmul_cases(product))


if __name__ == "__main__":
    main()
