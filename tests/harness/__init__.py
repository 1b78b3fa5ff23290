"""What the end-to-end, fault and hostile tests stand on. Tests import this package and never each other.

    checks.py      check, wait_for, and how a test fails or is skipped
    processes.py   what /proc says
    laneway.py     a Laneway of the test's own, programs under it
    runner.py      main(), which a script ends with
    jobs.py        programs that iterate, and what `laneway top` and /metrics say of them
    stepped.py     programs that make a step when they are told to
    growing.py     programs that allocate when they are told to
    trace_file.py  the slices in a file of `laneway trace`

Nothing here sleeps to synchronise: waiting is polling a condition until a deadline, after which the test fails and
says what it waited for. A script puts tests/ on its path, so that it runs by hand as well as under ctest.
"""
from harness.checks import (HANG_SECONDS, POLL_SECONDS, Failure, Skip, check, chosen, wait_for, without_times,
                            without_waits)
from harness.laneway import PROGRAM_SECONDS, Laneway, Program, Result
from harness.processes import alive, children_of, name_of, open_files, state_of
from harness.runner import main

__all__ = [
    "HANG_SECONDS", "POLL_SECONDS", "PROGRAM_SECONDS", "Failure", "Laneway", "Program", "Result", "Skip", "alive",
    "check", "children_of", "chosen", "main", "name_of", "open_files", "state_of", "wait_for", "without_times",
    "without_waits",
]
