#!/usr/bin/env python3
"""The kernels of bench/kernel_bench.cpp and bench/attention_bench.cpp in PyTorch, eager and through torch.compile."""
import torch
import torch.nn.functional as F

from peer import median_ns, serve
from torch_facts import facts

ACTIVATION = {"l2": (256, 768), "dram": (8192, 3072)}
SOFTMAX = {"l2": (256, 1024), "dram": (16384, 1024)}
LOGITS = {"l2": (8, 50304), "dram": (1024, 50304)}
HEADS = {"l2": (1, 12, 256, 64), "dram": (4, 12, 1024, 64)}  # batch, heads, positions, size of a head
ROPE = {"l2": (1, 12, 256, 64), "dram": (16, 12, 2048, 64)}


def one(shapes):
    """A kernel's operands: those that get gradients, then those that do not."""
    return shapes, lambda shape: ([torch.randn(shape)], [])


def normalised(*parameters):
    return ACTIVATION, lambda shape: ([torch.randn(shape)] + [make(shape[-1]) for make in parameters], [])


def classified(shape):
    return [torch.randn(shape)], [torch.randint(0, shape[1], (shape[0],))]


def queries_keys_values(shape):
    return [torch.randn(shape) for _ in range(3)], []


def rotated(shape):
    """Angles are made outside the measurement, as tables are in every model."""
    positions, size = shape[-2:]
    frequencies = 10000.0 ** (-torch.arange(0, size, 2) / size)
    angles = torch.outer(torch.arange(positions), frequencies)
    return [torch.randn(shape)], [torch.cos(angles), torch.sin(angles)]


def rope(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


# name: (shapes, operands of a shape, function). Functions have names of their own, so that each has a code object of
# its own: torch.compile counts recompilations for a code object and gives up after eight.
KERNELS = {
    "gelu": (*one(ACTIVATION), lambda x: F.gelu(x)),
    "gelu_tanh": (*one(ACTIVATION), lambda x: F.gelu(x, approximate="tanh")),
    "silu": (*one(ACTIVATION), lambda x: F.silu(x)),
    "softmax": (*one(SOFTMAX), lambda x: torch.softmax(x, -1)),
    "layer_norm": (*normalised(torch.ones, torch.zeros), lambda x, w, b: F.layer_norm(x, w.shape, w, b)),
    "rms_norm": (*normalised(torch.ones), lambda x, w: F.rms_norm(x, w.shape, w, 1e-5)),
    "cross_entropy": (LOGITS, classified, lambda x, t: F.cross_entropy(x, t)),
    "sum_last": (*one(ACTIVATION), lambda x: x.sum(-1)),
    "sum_first": (*one(ACTIVATION), lambda x: x.sum(0)),
    "sum_all": (*one(ACTIVATION), lambda x: x.sum()),
    "max_last": (*one(ACTIVATION), lambda x: x.amax(-1)),
    "attention": (HEADS, queries_keys_values, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)),
    "rope": (ROPE, rotated, rope),
}


def forward(function, leaves, constants, _):
    with torch.no_grad():
        return median_ns(lambda: function(*leaves, *constants))


def forward_backward(function, leaves, constants, dy):
    for leaf in leaves:
        leaf.requires_grad_()

    def step():
        for leaf in leaves:
            leaf.grad = None
        function(*leaves, *constants).backward(dy)
    return median_ns(step)


def case(function, compiled, measure, make, shape):
    def time_it():
        torch.manual_seed(1)
        leaves, constants = make(shape)
        dy = torch.randn_like(function(*leaves, *constants))
        return {mode: measure(code, leaves, constants, dy) for mode, code in (("eager", function), ("compile", compiled))}
    return time_it


def main():
    cases = {}
    for name, (shapes, make, function) in KERNELS.items():
        compiled = torch.compile(function, dynamic=False)
        for size, shape in shapes.items():
            cases[f"{name}_{size}_forward"] = case(function, compiled, forward, make, shape)
            cases[f"{name}_{size}_forward_backward"] = case(function, compiled, forward_backward, make, shape)
    serve(**facts(), cases=cases)


if __name__ == "__main__":
    main()
