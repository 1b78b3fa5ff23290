"""One view of memory: what driver, runtime and pools tell a program, and status tells everyone, agrees to the byte."""
import json
import os
import pathlib
import sys

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


if __name__ == "__main__":
    harness.main()
