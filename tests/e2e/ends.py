"""A session's end does not wait for other sessions, and no stream outlives its program."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import Laneway, check, wait_for  # noqa: E402


def start_held(laneway, way):
    held = laneway.spawn([laneway.binary("held"), way], holding=True)
    held.wait_for_line("held")
    return held


def check_quiet(laneway):
    log = (laneway.runtime / "log" / "lanewayd.log").read_text(errors="replace")
    check("left work" not in log, f"a session is blamed:\n{log}")


def ends_beside_a_held_stream(way):
    with Laneway(start=False) as laneway:
        laneway.start_daemon([laneway.binary("lanewayd"), "--device=soft", "--kill-timeout=2"])
        held = start_held(laneway, way)
        workers = laneway.processes("laneway-worker")
        used = laneway.used_bytes()
        for _ in range(3):
            result = laneway.run([laneway.binary("pinned")], seconds=30)
            check(result.code == 0, f"beside a held stream\n{result}")
            wait_for(lambda: len(laneway.sessions()) == 1, "its place comes back", 10)
            wait_for(lambda: laneway.used_bytes() == used, "its memory comes back", 10)
        started = laneway.spawn([laneway.binary("iterate"), "--iterations", "1000000"])
        wait_for(lambda: len(laneway.sessions()) == 2, "another program has its session")
        started.kill()
        wait_for(lambda: len(laneway.sessions()) == 1, "the place of a killed one comes back", 10)
        check(held.running(), f"the held program has ended\n{held.errors()}")
        held.release()
        result = held.wait()
        check(result.code == 0, f"the held program\n{result}")
        check(laneway.processes("laneway-worker") == workers, "a worker has ended")
        check_quiet(laneway)


def test_ends_do_not_wait_for_a_stream_that_waits_for_a_value():
    ends_beside_a_held_stream("wait")


def test_ends_do_not_wait_for_a_host_function():
    ends_beside_a_held_stream("host")


def held_program_is_killed(way):
    with Laneway(start=False) as laneway:
        laneway.start_daemon([laneway.binary("lanewayd"), "--device=soft", "--kill-timeout=20"])
        workers = None
        for _ in range(2):
            held = start_held(laneway, way)
            workers = workers or laneway.processes("laneway-worker")
            held.kill()
            wait_for(lambda: laneway.sessions() == [], "the session ends with its program", 15)
            wait_for(lambda: laneway.used_bytes() == 0, "its memory comes back", 10)
        result = laneway.run([laneway.binary("pinned")], seconds=60)
        check(result.code == 0, f"after it\n{result}")
        check(laneway.processes("laneway-worker") == workers, "a worker has ended")
        check_quiet(laneway)


def test_a_wait_for_a_value_ends_with_its_program():
    held_program_is_killed("wait")


def test_a_full_stream_that_waits_ends_with_its_program():
    held_program_is_killed("full")


def test_a_host_function_ends_with_its_program():
    held_program_is_killed("host")


if __name__ == "__main__":
    harness.main()
