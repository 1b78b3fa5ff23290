"""Whether the branches of a tinygrad network may run side by side in a job that is replayed."""
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import Laneway, check, wait_for  # noqa: E402
from harness.jobs import session_of  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = [str(ROOT / ".venv/bin/python"), str(ROOT / "tests/frameworks/branches_tinygrad.py")]


def environment_with(**more):
    return {"DEV": "CUDA", "LD_LIBRARY_PATH": os.path.dirname(os.environ["NVRTC_PATH"]), **more}


def parallelism(laneway, **more):
    """How many kernels of an iteration run at a time, at most: all of them to those of the longest path."""
    program = laneway.spawn(COMMAND + ["1000000"], "--replay=always", **environment_with(**more))
    program.wait_for_line("10")
    job = str(wait_for(lambda: session_of(laneway, program), "it has a session")["job"])
    result = laneway.command("graph", job, "--json")
    check(result.code == 0, f"{result}\n{program.errors()}")
    graph = json.loads(result.out)
    kernels = sum(node["kind"] == "kernel" for node in graph["nodes"])
    check(kernels >= 50, f"an iteration has some sixty kernels: {kernels}")
    program.kill()
    return kernels / graph["critical_path_operations"]


def test_tinygrad_branches_are_independent():
    with Laneway() as laneway:
        as_it_comes = parallelism(laneway, NO_MEMORY_PLANNER="0")
        check(as_it_comes < 1.5, f"branches that share an arena are in each other's way: {as_it_comes}")
        with_what_is_set = parallelism(laneway)
        check(with_what_is_set > 4, f"with what laneway run sets there are eight branches: {with_what_is_set}")


def test_tinygrad_branches_have_the_same_bits():
    with Laneway() as laneway:
        results = [laneway.run(COMMAND, *flags, **environment_with())
                   for flags in ((), ("--replay=always",), ("--replay=always", "--no-env"))]
        check(all(result.code == 0 and "60 " in result.out for result in results), f"{results}")
        check(len({result.out for result in results}) == 1, f"{[result.out for result in results]}")


if __name__ == "__main__":
    harness.main()
