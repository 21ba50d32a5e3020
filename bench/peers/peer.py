"""What the peers share: the conversation with bench/compare.py, and timing.

A peer first prints one line of facts, {"peer", "threads", "compiler", "cases"}. For every line it then reads, the name
of a case, it prints one line {mode: nanoseconds}. So it is started once, and what it compiles stays compiled, while
its cases run in turns with ours. Cases named on the command line run at once instead.
"""
import json
import os
import statistics
import sys
import time


def median_ns(function, seconds=0.25, fewest=3):
    """The median of single calls, as median_seconds in bench/harness.h."""
    function()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < fewest:
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e9


def serve(peer, threads, compiler, cases):
    """cases: {name: function that returns {mode: ns}}."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")  # libraries that print must not print into the conversation
    os.dup2(2, 1)
    names = sys.argv[1:]
    if not names:
        facts = {"peer": peer, "threads": threads, "compiler": compiler, "cases": list(cases)}
        print(json.dumps(facts), file=answers, flush=True)
    for name in names or map(str.strip, sys.stdin):
        print(json.dumps(cases[name]()), file=answers, flush=True)
