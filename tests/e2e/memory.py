"""One view of memory: what driver, runtime and pools tell a program, and status tells everyone, agrees to the byte."""
import json
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import Laneway, check, wait_for  # noqa: E402
from harness.stepped import Stepped, alone  # noqa: E402

MIB = 1 << 20
STEPS = 9  # that memory_view tells of
SCRATCH_MIB = 4  # limits::kRenameBytesMax


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


def width_of_run(laneway, command, **environment):
    """Of the longest run of launches that the client has looked at: launches, width, longest path, whether it renames."""
    with tempfile.NamedTemporaryFile("r") as notes:
        result = laneway.run(command, "--transport=ring", "--replay=always", LANEWAY_TEST_ORDERS=notes.name,
                             **environment)
        check(result.code == 0, f"{result}")
        launches, _, width, longest_path, _, renamed = max([int(word) for word in line.split()] for line in notes)
    return launches, width, longest_path, renamed != 0


def test_branches_that_free_memory_are_independent_where_it_waits():
    with Laneway() as laneway:
        for way in ("malloc", "async"):
            branches = [laneway.binary("branches"), "60", way]
            waits = width_of_run(laneway, branches)
            check(waits == (63, 8, 14, False), f"{way}: {waits}, not seven layers, and seven sums behind them")
            at_once = width_of_run(laneway, branches, LANEWAY_TEST_FREED_AT_ONCE="1")
            check(at_once == (63, 8, 14, True), f"{way}: {at_once} where freed memory is used again at once")


def test_branches_that_share_a_buffer_are_independent_in_scratch_memory():
    with Laneway() as laneway:
        told = width_of_run(laneway, [laneway.binary("replayed"), "4", "scratch"])
        check(told == (17, 8, 3, True), f"{told}, not two of each branch, and one behind them")


def device_bytes(laneway, rounds, *options, first=None):
    """Of a session after each round: its branches use one buffer in turn. The first round's iteration goes on until
    the session has `first` bytes, as its launches are proven while it runs."""
    program = Stepped(laneway, "scratch", alone(laneway, "scratch", rounds, "replayed"), rounds, *options,
                      name="replayed")
    told = []

    def bytes_now():
        return laneway.sessions()[0]["device_bytes"]

    def times_again():
        return program.program.errors().splitlines().count("again")

    def goes_on_to_first():
        if bytes_now() == first:
            return True
        times = times_again()
        program.send(b"a")
        wait_for(lambda: times_again() > times, "the iteration once more")
        return bytes_now() == first

    while program.round < rounds - 1:
        program.step()
        if first is not None and not told:
            wait_for(goes_on_to_first, lambda: f"{first} bytes, and not {bytes_now()}")
        told.append(bytes_now())
    program.goes_on_to_its_end()
    return told


def test_scratch_memory_counts_as_the_sessions():
    with Laneway() as laneway:
        (alone_bytes,) = device_bytes(laneway, 2)
        with_scratch = alone_bytes + SCRATCH_MIB * MIB
        check(device_bytes(laneway, 2, "--replay=always", first=with_scratch) == [with_scratch], "it has scratch memory")
        wait_for(lambda: laneway.used_bytes() == 0, "nothing is left")


def test_scratch_memory_goes_before_the_program_is_refused_memory():
    """The program allocates 2 MiB before its second round; with the scratch memory, 1 MiB is left."""
    with Laneway() as laneway:
        (alone_bytes,) = device_bytes(laneway, 2)
        limit = f"--memory={alone_bytes // MIB + SCRATCH_MIB + 1}MiB"
        with_scratch = alone_bytes + SCRATCH_MIB * MIB
        told = device_bytes(laneway, 3, "--replay=always", limit, first=with_scratch)
        check(told == [with_scratch, alone_bytes + 2 * MIB], f"{told}: it has given it back")


def test_where_no_room_is_free_there_is_no_scratch_memory():
    """The program needs 4 MiB. Its results are the same, and what it may have is its own."""
    with Laneway() as laneway:
        (alone_bytes,) = device_bytes(laneway, 2)
        limit = f"--memory={(alone_bytes + SCRATCH_MIB * MIB) // MIB - 1}MiB"
        check(device_bytes(laneway, 2, "--replay=always", limit) == [alone_bytes], "it has none")


if __name__ == "__main__":
    harness.main()
