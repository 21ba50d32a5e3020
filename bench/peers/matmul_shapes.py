"""The products of bench/matmul_bench.cpp: every linear layer of GPT-2 124M, forward and both gradients."""
LAYERS = {"qkv": (768, 2304), "projection": (768, 768), "up": (768, 3072), "down": (3072, 768), "head": (768, 50304)}


def matmul_cases(product):
    """{name: product(rows, inner, columns, transpose_a, transpose_b)}"""
    cases = {}
    for tokens in (256, 1024):
        for name, (inputs, outputs) in LAYERS.items():
            cases[f"{name}_{tokens}_forward"] = product(tokens, inputs, outputs, transpose_b=True)
            cases[f"{name}_{tokens}_dx"] = product(tokens, outputs, inputs)
            cases[f"{name}_{tokens}_dw"] = product(outputs, tokens, inputs, transpose_a=True)
    return cases
