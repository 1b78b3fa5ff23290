"""Runs the test_* functions of a script, as ctest asks: `script.py --build DIR [test_name...]`."""
import argparse
import inspect
import pathlib
import sys

from harness.checks import Failure, Skip
from harness.laneway import Laneway

SKIPPED = 77  # ctest's SKIP_RETURN_CODE


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--list", action="store_true", help="print the tests' names")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--long", action="store_true", help="also what takes too long for every run")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    tests = {name: value for name, value in vars(sys.modules["__main__"]).items() if name.startswith("test_")}
    if options.list:
        print("\n".join(tests))
        return
    Laneway.build = options.build.resolve()
    code = 0
    for name in options.names or tests:
        code = max(code, run_test(name, tests[name], options))
    sys.exit(code)


def run_test(name, test, options):
    given = {"rounds": options.rounds, "minutes": options.minutes, "seed": options.seed, "long": options.long}
    wanted = inspect.signature(test).parameters
    try:
        test(**{key: value for key, value in given.items() if key in wanted})
    except Skip as reason:
        print(f"{name}: skipped: {reason}")
        return SKIPPED
    except Failure as failure:
        print(f"{name}: FAILED: {failure}")
        return 1
    print(f"{name}: ok")
    return 0
