"""Two programs of one user share device memory (cuIpcGetMemHandle)."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import Laneway, check, wait_for  # noqa: E402

MIB = 1 << 20


def lines(laneway, what):
    result = laneway.run([laneway.binary("shared"), what])
    check(result.code == 0, f"{what}\n{result}")
    wait_for(lambda: laneway.used_bytes() == 0, "nothing is left")
    return sorted(result.out.splitlines())


def test_both_read_and_write():
    with Laneway() as laneway:
        out = lines(laneway, "exchange")
        check("child: 1000 3145728" in out, f"the child reads what its parent wrote\n{out}")
        check("parent: 1000 3145728" in out, f"the parent reads what its child's kernels wrote\n{out}")
        check("child: close again 1" in out and "child: closed 1" in out, f"what is closed is gone\n{out}")


def test_handles():
    with Laneway() as laneway:
        out = lines(laneway, "handles")
        check("own 201, host 1, managed 1, nothing 1" in out, f"what cannot be shared or opened\n{out}")
        check("child: again 1" in out and "child: still 1000" in out, f"handles are counted\n{out}")
        check("child: changed 400 400 400 400 400 400, flags 1" in out, f"no changed handle is one\n{out}")
        check("child: free 1, close inside 1" in out and "child: hand on 1" in out, f"it is another's\n{out}")


def test_memory_that_its_program_frees():
    """The other keeps it, and sees nothing of what the first allocates next."""
    with Laneway() as laneway:
        out = lines(laneway, "free")
        check("child: kept 3145728" in out and "parent: 6291456" in out, f"each has its own\n{out}")


def test_a_program_that_ends_first():
    with Laneway() as laneway:
        program = laneway.spawn([laneway.binary("shared"), "dies"])
        wait_for(lambda: "child: kept 3145728" in program.output(), "the child still has the memory")
        wait_for(lambda: laneway.sessions() == [] and laneway.used_bytes() == 0, "nothing is left")
        check(program.wait().code == 0, "it ends well")
        check(len(laneway.processes("laneway-worker")) == 1, "the worker goes on")


def test_a_program_that_is_killed():
    """Its memory is counted once, both stay where they are, and the one that has the memory goes on."""
    with Laneway() as laneway:
        program = laneway.spawn([laneway.binary("shared"), "holds"], holding=True)
        program.wait_for_line("holds", 60)
        sessions = laneway.sessions()
        check(len(sessions) == 2, f"{sessions}")
        check(sum(session["device_bytes"] for session in sessions) == laneway.used_bytes(), f"once\n{sessions}")
        for session in sessions:
            check(not session["recoverable"] and "shares" in session["obstacle"], f"it stays\n{session}")
        program.release()
        result = program.wait()
        check(result.code == 0 and "parent: 3145728" in result.out, f"the parent goes on\n{result}")
        wait_for(lambda: laneway.used_bytes() == 0, "nothing is left")
        check(len(laneway.processes("laneway-worker")) == 1, "the worker goes on")


if __name__ == "__main__":
    harness.main()
