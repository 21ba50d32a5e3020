#!/usr/bin/env python3
"""The calls of bench/attention_bench.cpp in PyTorch. Prints {"peer": ..., "ns": {name: ns}}."""
import json
import statistics
import time

import torch
import torch.nn.functional as F

# name: batch, heads, kv heads, queries, keys, head size, causal
CASES = {
    "causal_b1_t256": (1, 12, 12, 256, 256, 64, True),
    "causal_b4_t1024": (4, 12, 12, 1024, 1024, 64, True),
    "full_b1_t1024": (1, 12, 12, 1024, 1024, 64, False),
    "grouped_b1_t1024": (1, 12, 4, 1024, 1024, 64, True),
    "causal_b1_t1024_d128": (1, 8, 8, 1024, 1024, 128, True),
    "decode_b4_t1024": (4, 12, 12, 1, 1024, 64, False),  # the last query sees every key
}


def nanoseconds(function, seconds=0.5):
    function()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e9


@torch.compile
def rope(x, cosine, sine):
    """Llama's form, fused; the table is given, brrr makes it in every call."""
    half = x.shape[-1] // 2
    return x * cosine + torch.cat((-x[..., half:], x[..., :half]), -1) * sine


def measure_rope(batch, seq, size=64):
    frequencies = 1.0 / 10000 ** (torch.arange(0, size, 2) / size)
    angles = torch.arange(seq)[:, None] * frequencies
    table = torch.cat((angles, angles), -1)
    x, cosine, sine = torch.randn(batch, 12, seq, size), table.cos(), table.sin()
    return nanoseconds(lambda: rope(x, cosine, sine))


def main():
    torch.set_num_threads(2)
    torch.set_float32_matmul_precision("highest")
    result = {"rope_b1_t256": measure_rope(1, 256), "rope_b4_t1024": measure_rope(4, 1024)}
    for name, (batch, heads, kv_heads, queries, keys, size, causal) in CASES.items():
        q, seed = torch.randn(2, batch, heads, queries, size)
        k, v = torch.randn(2, batch, kv_heads, keys, size)

        def forward():
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=heads != kv_heads)

        result[f"{name}_forward"] = nanoseconds(forward)
        q, k, v = (x.clone().requires_grad_() for x in (q, k, v))
        result[f"{name}_training"] = nanoseconds(lambda: torch.autograd.grad(forward(), (q, k, v), seed))
    print(json.dumps({"peer": f"torch {torch.__version__} eager", "threads": torch.get_num_threads(), "ns": result}))


if __name__ == "__main__":
    main()
