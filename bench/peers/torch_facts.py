"""What a result must say about PyTorch."""
import re
import shutil
import subprocess

import torch


def facts(threads=2):
    """Fixes the number of threads; returns what peer.serve wants to know."""
    torch.set_num_threads(threads)
    torch.set_float32_matmul_precision("highest")
    built_with = re.search(r"(GCC|clang) [\d.]+", torch.__config__.show())
    compiler = built_with.group(0) if built_with else "unknown"
    if shutil.which("g++"):  # torch.compile writes C++ and compiles it with this one
        version = subprocess.run(["g++", "-dumpfullversion"], capture_output=True, text=True, check=False).stdout.strip()
        compiler += f"; torch.compile with g++ {version}"
    return {"peer": f"torch {torch.__version__}", "threads": torch.get_num_threads(), "compiler": compiler}
