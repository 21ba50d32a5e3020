#!/usr/bin/env python3
"""The kernels of bench/kernel_bench.cpp in PyTorch, eager and through torch.compile."""
import torch
import torch.nn.functional as F

from peer import serve
from torch_peer import facts, kernel_cases

ACTIVATION = {"l2": (256, 768), "dram": (8192, 3072)}
SOFTMAX = {"l2": (256, 1024), "dram": (16384, 1024)}
LOGITS = {"l2": (8, 50304), "dram": (1024, 50304)}


def one(shape):
    return [torch.randn(shape)], []


def with_weight(shape):
    return [torch.randn(shape), torch.ones(shape[-1])], []


def with_weight_and_bias(shape):
    return [torch.randn(shape), torch.ones(shape[-1]), torch.zeros(shape[-1])], []


def with_targets(shape):
    return [torch.randn(shape)], [torch.randint(0, shape[1], (shape[0],))]


# name: (shapes, operands of a shape, function). Each function has a code object of its own: torch.compile counts
# recompilations for a code object and gives up after eight.
KERNELS = {
    "gelu": (ACTIVATION, one, lambda x: F.gelu(x)),
    "gelu_tanh": (ACTIVATION, one, lambda x: F.gelu(x, approximate="tanh")),
    "silu": (ACTIVATION, one, lambda x: F.silu(x)),
    "softmax": (SOFTMAX, one, lambda x: torch.softmax(x, -1)),
    "layer_norm": (ACTIVATION, with_weight_and_bias, lambda x, w, b: F.layer_norm(x, w.shape, w, b)),
    "rms_norm": (ACTIVATION, with_weight, lambda x, w: F.rms_norm(x, w.shape, w, 1e-5)),
    "cross_entropy": (LOGITS, with_targets, lambda x, t: F.cross_entropy(x, t)),
    "sum_last": (ACTIVATION, one, lambda x: x.sum(-1)),
    "sum_first": (ACTIVATION, one, lambda x: x.sum(0)),
    "sum_all": (ACTIVATION, one, lambda x: x.sum()),
    "max_last": (ACTIVATION, one, lambda x: x.amax(-1)),
}


def main():
    cases = {}
    for name, (shapes, make, function) in KERNELS.items():
        compiled = torch.compile(function, dynamic=False)
        for size, shape in shapes.items():
            cases |= kernel_cases(f"{name}_{size}", function, compiled, lambda make=make, shape=shape: make(shape))
    serve(**facts(), cases=cases)


if __name__ == "__main__":
    main()
