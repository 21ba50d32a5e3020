#!/usr/bin/env python3
"""The calls of bench/attention_bench.cpp in PyTorch, eager and through torch.compile."""
import torch
import torch.nn.functional as F

from peer import serve
from torch_peer import facts, kernel_cases

# name: batch, heads, kv heads, queries, keys, head size, causal
ATTENTION = {
    "attention_l2": (1, 12, 12, 256, 256, 64, True),
    "attention_dram": (4, 12, 12, 1024, 1024, 64, True),
    "attention_full": (1, 12, 12, 1024, 1024, 64, False),
    "attention_grouped": (1, 12, 4, 1024, 1024, 64, True),
    "attention_head128": (1, 8, 8, 1024, 1024, 128, True),
    "attention_decode": (4, 12, 12, 1, 1024, 64, False),  # the last query sees every key; ours calls that causal
}
ROPE = {"rope_l2": (1, 12, 256, 64), "rope_dram": (16, 12, 2048, 64)}  # batch, heads, positions, head size


def attention_cases(name, batch, heads, kv_heads, queries, keys, size, causal):
    def attention(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=heads != kv_heads)

    def make():
        q, kv = (batch, heads, queries, size), (batch, kv_heads, keys, size)
        return [torch.randn(q), torch.randn(kv), torch.randn(kv)], []
    return kernel_cases(name, attention, torch.compile(attention, dynamic=False), make)


def rope(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


def rope_operands(shape):
    """Angles are made outside the measurement, as tables are in every model."""
    positions, size = shape[-2:]
    frequencies = 10000.0 ** (-torch.arange(0, size, 2) / size)
    angles = torch.outer(torch.arange(positions), frequencies)
    return [torch.randn(shape)], [torch.cos(angles), torch.sin(angles)]


def main():
    torch._dynamo.config.recompile_limit = 32  # the six attentions share one code object
    cases = {}
    for name, sizes in ATTENTION.items():
        cases |= attention_cases(name, *sizes)
    compiled = torch.compile(rope, dynamic=False)
    for name, shape in ROPE.items():
        cases |= kernel_cases(name, rope, compiled, lambda shape=shape: rope_operands(shape))
    serve(**facts(), cases=cases)


if __name__ == "__main__":
    main()
