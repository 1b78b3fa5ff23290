"""What people and the machine do while lanes are full: the jobs in them end with the bytes that they have alone."""
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import Laneway, Skip, check, wait_for  # noqa: E402
from harness.growing import GROW_MIB, Growing  # noqa: E402
from harness.jobs import all_equal, of_job, session_of, sharing, started  # noqa: E402

MEMORY = "memory=192MiB"


def test_who_is_evicted_comes_back_with_its_bytes():
    with Laneway(softgpu=MEMORY, start=False) as laneway:
        started(laneway, "fair")
        command, programs = sharing(laneway, 3, 300)
        job = session_of(laneway, programs[0])["job"]
        for _ in range(2):
            result = laneway.command("evict", str(job))
            check(result.code == 0, f"evict\n{result}")
            wait_for(lambda: session_of(laneway, programs[0])["device_bytes"] == 0,
                     lambda: f"it leaves the device: {of_job(laneway, job)}")
            check(of_job(laneway, job)["state"] == "evicted", f"top says it: {of_job(laneway, job)}")
            result = laneway.command("resume", str(job))
            check(result.code == 0, f"resume\n{result}")
        all_equal(laneway, command, programs)


def test_growth_beyond_a_new_limit_is_refused():
    with Laneway(softgpu=MEMORY, start=False) as laneway:
        started(laneway, "fair")
        command, programs = sharing(laneway, 2)
        growing = Growing(laneway)
        check(growing.grows() == 0, "what is within the device")
        result = laneway.command("limit", str(growing.job), f"{2 * GROW_MIB}MiB")
        check(result.code == 0, f"limit\n{result}")
        codes = [growing.grows() for _ in range(3)]
        check(codes == [0, 2, 2], f"up to its new limit, and not beyond: {codes}")
        result = laneway.command("limit", str(growing.job), f"{3 * GROW_MIB}MiB")
        check((result.code, growing.grows(), growing.grows()) == (0, 0, 2), f"up to a wider one\n{result}")
        growing.end()
        all_equal(laneway, command, programs)


def test_the_disk_for_state_is_full():
    if os.geteuid() != 0:
        raise Skip("needs root, to mount a small file system")
    with Laneway(softgpu=MEMORY, start=False) as laneway:
        state = laneway.root / "state"
        state.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(state)]
        if subprocess.run(command, capture_output=True, check=False).returncode != 0:
            raise Skip("may not mount a file system here")
        try:
            started(laneway, "fair")
            command, programs = sharing(laneway, 3)
            fill(state / "filler")
            for _ in range(2):  # their ends are to be written down
                check(laneway.run([laneway.binary("connect")]).code == 0, "newcomers run")
            all_equal(laneway, command, programs)
            log = (laneway.runtime / "log" / "lanewayd.log").read_text()
            said = re.findall(r"cannot write (\S+): .*running jobs go on", log)
            check(said and len(said) == len(set(said)), f"the daemon says it, and once of each file: {said}")
            laneway.command("stop")
            wait_for(lambda: not laneway.processes(), "the daemon ends")
        finally:
            subprocess.run(["umount", "-l", str(state)], check=True)


def fill(path):
    """Takes what is left of the file system."""
    with open(path, "wb", buffering=0) as file:
        try:
            while file.write(b"x" * 1024):
                pass
        except OSError:
            pass


def test_swap_space_is_used_up():
    """Nothing can leave, and who rests gives nothing back: the newcomer is refused, who was there goes on."""
    with Laneway(softgpu=MEMORY, start=False) as laneway:
        started(laneway, "fair", "--swap=0MiB")
        first = Growing(laneway)
        check([first.grows() for _ in range(12)] == [0] * 12, f"half of the device: {first.answers()}")
        second = Growing(laneway)
        while second.grows() == 0:
            check(second.asked < 24, "both have more than there is")
        check(second.answers()[-1] == 2, f"out of memory, and no other failure: {second.answers()}")
        why = laneway.command("why", str(second.job)).out
        check("the host memory for swapped jobs is used up" in why, f"why says it: {why}")
        log = (laneway.runtime / "log" / "lanewayd.log").read_text()
        check("(--swap, 0 B) is used up" in log, f"and the log says why it waited: {log}")
        second.end()
        check(first.grows() == 0, "what it left is there for the other")
        first.end()


def test_who_came_first_is_not_failed_by_who_rests():
    """Without swap space, it waits for what a later one holds that rests; that one is told when it asks for more."""
    with Laneway(softgpu=MEMORY, start=False) as laneway:
        started(laneway, "fair", "--swap=0MiB")
        first, second = Growing(laneway), Growing(laneway)
        check(first.grows() == 0, "it has some")
        check([second.grows() for _ in range(20)] == [0] * 20, f"most of the device: {second.answers()}")
        while "device memory" not in laneway.command("why", str(first.job)).out:
            if len(first.answers()) == first.asked:
                first.grow()
        while second.grows() == 0:
            check(second.asked < 24, "both have more than there is")
        check(second.answers()[-1] == 2, f"the later one is refused: {second.answers()}")
        check(len(first.answers()) == first.asked - 1, f"the earlier one waits still: {first.answers()}")
        why = laneway.command("why", str(first.job)).out
        check("the host memory for swapped jobs" in why and f"job {second.job} holds" in why, f"why says it: {why}")
        second.end()
        wait_for(lambda: len(first.answers()) == first.asked, "it is answered")
        check(first.answers() == [0] * first.asked, f"it has what it asked for: {first.answers()}")
        first.end()


if __name__ == "__main__":
    harness.main()
