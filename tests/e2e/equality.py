"""Runs one program on the bare software GPU and through Laneway, and compares what it prints, byte for byte.

    equality.py --build DIR [OPTIONS] -- NAME COMMAND [ARGUMENTS...]

Through Laneway means: over rings and over ZeroMQ, each alone and with three others running. Lines that begin with
"time:" are left out; the exit code and standard error must be equal too. A first word of the command without a slash
is a program of ours.
"""
import argparse
import difflib
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import Failure, Laneway  # noqa: E402


def difference(expected, actual):
    lines = difflib.unified_diff(expected.splitlines(), actual.splitlines(), "bare device", "through Laneway", lineterm="")
    return "\n".join(list(lines)[:40])


def compare(where, expected, actual, streams):
    if actual.code != expected.code:
        raise Failure(f"{where}: exit code {actual.code}, on the bare device {expected.code}\n{actual}")
    for stream, name in streams.items():
        left, right = (harness.without_times(getattr(result, stream)) for result in (expected, actual))
        if left != right:
            raise Failure(f"{where}: {name} differs\n{difference(left, right)}")


def run_all(command, options):
    environment = dict(pair.split("=", 1) for pair in options.env)
    transports = options.transport or ("ring", "zmq")
    streams = {"out": "standard output"} if options.says else {"out": "standard output", "err": "standard error"}
    with Laneway() as laneway:
        command = [word if "/" in word else laneway.binary(word) for word in command[:1]] + command[1:]
        expected = laneway.bare(command, **environment)
        if expected.code != 0 or (options.forbid and options.forbid in expected.out):
            raise Failure(f"on the bare device:\n{expected}")
        for transport in transports:
            result = laneway.run(command, f"--transport={transport}", *options.flag, **environment)
            compare(f"{transport}, alone", expected, result, streams)
            if options.says and options.says not in result.err:
                raise Failure(f"{transport}, alone: standard error lacks '{options.says}'\n{result}")
        if options.alone:
            return
        others = laneway.neighbours()
        for transport in transports:
            compare(f"{transport}, with three others", expected,
                    laneway.run(command, f"--transport={transport}", *options.flag, **environment), streams)
        for other in others:
            if not other.running():
                raise Failure(f"a neighbour ended: {other.process.args}\n{other.errors()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--transport", action="append", choices=("ring", "zmq"), help="default: both")
    parser.add_argument("--alone", action="store_true", help="only with nothing else running")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--flag", action="append", default=[], help="of `laneway run`, for this program")
    parser.add_argument("--says", metavar="WORDS", help="what Laneway says about this program on standard error")
    parser.add_argument("--forbid", metavar="WORD", help="a word that the output must not contain")
    parser.add_argument("name")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    Laneway.build = options.build.resolve()
    try:
        run_all(options.command, options)
    except Failure as failure:
        print(f"{options.name}: FAILED: {failure}")
        sys.exit(1)
    print(f"{options.name}: equal")


if __name__ == "__main__":
    main()
