"""What the peers in PyTorch share: the facts that a result must carry, and kernels measured forward and forward with
backward, eager and through torch.compile."""
import re
import shutil
import subprocess

import torch

from peer import median_ns


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


def kernel_cases(name, function, compiled, make):
    """<name>_forward and <name>_forward_backward. make() gives the operands: those that get gradients, then those that
    do not; only the operands of the case that runs are in memory."""
    def case(measure):
        def time_it():
            torch.manual_seed(1)
            leaves, constants = make()
            dy = torch.randn_like(function(*leaves, *constants))
            return {mode: measure(code, leaves, constants, dy)
                    for mode, code in (("eager", function), ("compile", compiled))}
        return time_it
    return {f"{name}_forward": case(forward), f"{name}_forward_backward": case(forward_backward)}
