"""One view of memory: what driver, runtime and pools tell a program, and status tells everyone, agrees to the byte."""
import json
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import Laneway, check, wait_for  # noqa: E402

MIB = 1 << 20
STEPS = 9  # that memory_view tells of


def views(program):
    """What it has told so far: a list of numbers for each step."""
    return [[int(word) for word in line.split()] for line in program.output().splitlines()]


def check_view(view, status, limit, what):
    free, total, free_runtime, total_runtime, used, reserved, own_used, own_reserved, allocated = view
    device, session = status["devices"][0], status["sessions"][0]
    text = f"{what}: the program says {view}, status {device} and {session}"
    check((free, total) == (free_runtime, total_runtime), f"driver and runtime differ\n{text}")
    check(total == min(limit or device["capacity_bytes"], device["capacity_bytes"]), f"the device's size\n{text}")
    check(used <= reserved and own_used <= own_reserved, f"a pool uses more than it has\n{text}")
    check(total - free == allocated + reserved + own_reserved, f"what it uses is what it allocated\n{text}")
    check(total - free == session["device_bytes"] - session["empty_bytes"], f"status says otherwise\n{text}")
    check(device["used_bytes"] == session["device_bytes"], f"nobody else has memory\n{text}")
    check(device["used_bytes"] + device["free_bytes"] == device["capacity_bytes"], text)
    check(status["jobs"][0]["empty_bytes"] == session["empty_bytes"], text)


def agrees(*options, limit=None):
    with Laneway() as laneway:
        program = laneway.spawn([laneway.binary("memory_view")], *options, holding=True)
        empty = 0
        for step in range(STEPS):
            wait_for(lambda step=step: len(views(program)) > step or not program.running(), f"step {step}")
            check(len(views(program)) > step, f"it ended\n{program.output()}{program.errors()}")
            status = json.loads(laneway.status())
            check_view(views(program)[step], status, limit, f"step {step}")
            empty = max(empty, status["sessions"][0]["empty_bytes"])
            os.write(program.process.stdin.fileno(), b"x")
        check(empty > 0, "it kept no empty ranges: nothing was shown")
        result = program.wait()
        check(result.code == 0, f"{result}")
        wait_for(lambda: laneway.used_bytes() == 0, "nothing is left")


def test_every_query_says_the_same():
    agrees()


def test_every_query_says_the_same_below_a_limit():
    agrees("--memory=64MiB", limit=64 * MIB)


def width_of_branches(laneway, way, **environment):
    """Of the longest run of launches that the client has looked at: launches, width, longest path."""
    with tempfile.NamedTemporaryFile("r") as notes:
        result = laneway.run([laneway.binary("branches"), "60", way], "--transport=ring", "--replay=always",
                             LANEWAY_TEST_ORDERS=notes.name, **environment)
        check(result.code == 0, f"{result}")
        launches, _, width, longest_path, _ = max([int(word) for word in line.split()] for line in notes)
    return launches, width, longest_path


def test_branches_that_free_memory_are_independent_where_it_waits():
    with Laneway() as laneway:
        for way in ("malloc", "async"):
            check(width_of_branches(laneway, way) == (63, 8, 14), f"{way}: seven layers, and seven sums behind them")
            at_once = width_of_branches(laneway, way, LANEWAY_TEST_FREED_AT_ONCE="1")
            check(at_once == (63, 1, 63), f"{way}: {at_once} where freed memory is used again at once")


if __name__ == "__main__":
    harness.main()
