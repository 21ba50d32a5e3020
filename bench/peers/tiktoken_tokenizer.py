#!/usr/bin/env python3
"""The cases of bench/tokenizer_bench.cpp: encoding in tiktoken, training in Hugging Face tokenizers.

Ranks come from the files under $BRRR_DATA (else ../shared/data), so nothing is downloaded. On two threads tiktoken gets
the text as two halves in a batch; Hugging Face reads the number of threads from the environment when it starts, so each
number has a process of its own. Training is measured as one text and as lines, which its threads can share.
"""
import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import tiktoken

from peer import median_ns, serve

DATA = Path(os.environ.get("BRRR_DATA", "../shared/data"))
GPT2 = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""


def text():
    return (DATA / "text/dickens.txt").read_bytes().decode("utf-8", errors="replace")


def gpt2():
    """Ranks in the order of ids; byte-level text as in brrr/text/byte_level.h."""
    printable = [b for b in range(256) if 33 <= b <= 126 or b >= 161 and b != 173]
    others = [b for b in range(256) if b not in printable]
    byte_of = {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}
    vocab = json.loads((DATA / "tokenizers/gpt2/vocab.json").read_text(encoding="utf-8"))
    end = vocab.pop("<|endoftext|>")
    ranks = {bytes(byte_of[c] for c in token): rank for token, rank in vocab.items()}
    return tiktoken.Encoding("gpt2", pat_str=GPT2, mergeable_ranks=ranks, special_tokens={"<|endoftext|>": end})


def cl100k():
    folder = DATA / "tokenizers/tiktoken"
    meta = json.loads((folder / "cl100k_base.meta.json").read_text(encoding="utf-8"))
    lines = (folder / "cl100k_base.tiktoken").read_bytes().splitlines()
    ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in lines)}
    return tiktoken.Encoding("cl100k_base", pat_str=meta["pat_str"], mergeable_ranks=ranks,
                             special_tokens=meta["special_tokens"])


def encode_one(make):
    def time_it():
        encoding, content = make(), text()
        return {"encode_ordinary": median_ns(lambda: encoding.encode_ordinary(content))}
    return time_it


def encode_two(make):
    def time_it():
        encoding, content = make(), text()
        middle = content.index(" ", len(content) // 2)
        halves = [content[:middle], content[middle:]]
        return {"encode_ordinary_batch": median_ns(lambda: encoding.encode_ordinary_batch(halves, num_threads=2))}
    return time_it


def train(mode):
    """Runs in a process of its own; see train_case."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    content = text()
    texts = [content] if mode == "whole" else content.splitlines(keepends=True)

    def step():
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = trainers.BpeTrainer(vocab_size=8192, special_tokens=["<|endoftext|>"], show_progress=False,
                                      min_frequency=2, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
        tokenizer.train_from_iterator(texts, trainer)
    print(median_ns(step))


def train_case(threads):
    def time_it():
        environment = dict(os.environ, RAYON_NUM_THREADS=str(threads), TOKENIZERS_PARALLELISM="true" if threads > 1 else "false")
        def run(mode):
            out = subprocess.run([sys.executable, __file__, "--train", mode], env=environment, capture_output=True,
                                 text=True, check=True).stdout
            return float(out)
        return {f"tokenizers_{mode}": run(mode) for mode in ("whole", "lines")}
    return time_it


def main():
    if sys.argv[1:2] == ["--train"]:
        train(sys.argv[2])
        return
    import tokenizers
    cases = {}
    for threads, suffix, encode in ((1, "_one_thread", encode_one), (2, "_two_threads", encode_two)):
        cases["encode_gpt2" + suffix] = encode(gpt2)
        cases["encode_cl100k" + suffix] = encode(cl100k)
        cases["train_8192" + suffix] = train_case(threads)
    serve(peer=f"tiktoken {tiktoken.__version__}, tokenizers {tokenizers.__version__}", threads=2, compiler="rustc",
          cases=cases)


if __name__ == "__main__":
    main()
