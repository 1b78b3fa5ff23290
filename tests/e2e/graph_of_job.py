"""`laneway graph JOB` and `laneway kernels JOB`: what they tell of a running program, and of jobs that are none."""
import json
import os
import pathlib
import sys
import tempfile
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import Laneway, check, wait_for  # noqa: E402
from harness.jobs import session_of  # noqa: E402
from harness.stepped import Stepped, alone, live  # noqa: E402

KERNEL = "Mix(unsigned int*, unsigned int)"


def job_of(laneway, program):
    return str(wait_for(lambda: session_of(laneway, program), "it has a session")["job"])


def working(laneway, *options, **environment):
    program = laneway.spawn([laneway.binary("repeat"), "1000000000", "tell"], *options, **environment)
    program.wait_for_line("started")
    return program, job_of(laneway, program)


def graph_of(laneway, job):
    result = laneway.command("graph", job, "--json")
    check(result.code == 0 and not result.err, f"{result}")
    return json.loads(result.out)


def test_an_iteration_of_a_running_program():
    """A round of `repeat` is a chain: a kernel, a copy of what it wrote, a read-back of that, and the host's wait."""
    with Laneway() as laneway:
        program, job = working(laneway)
        graph = graph_of(laneway, job)
        kinds = sorted(node["kind"] for node in graph["nodes"])
        check(kinds == ["copy", "copy", "host_wait", "kernel"], f"{graph}")
        check(len(graph["edges"]) == 3 and graph["streams"] == 1 and graph["critical_path_operations"] == 3, f"{graph}")
        kernel = next(node for node in graph["nodes"] if node["kind"] == "kernel")
        check("Mix" in kernel["name"], f"{kernel}")
        check((kernel["blocks"], kernel["threads"]) == ([32, 1, 1], [128, 1, 1]), f"{kernel}")
        check("unknown" not in kernel and kernel["touches"] and kernel["time_ns"] > 0, f"{kernel}")
        check(graph["critical_path_ns"] <= graph["sum_ns"] and not graph["virtual_time"], f"{graph}")
        text = laneway.command("graph", job)
        check(text.code == 0 and KERNEL in text.out and "memory known of 1 of 1 kernel" in text.out, f"{text}")
        check(program.running(), f"{program.errors()}")


def test_files():
    with Laneway() as laneway:
        _, job = working(laneway)
        svg, dot = laneway.root / "graph.svg", laneway.root / "graph.dot"
        for option, path in (("--svg", svg), ("--dot", dot)):
            result = laneway.command("graph", job, option, str(path))
            check(result.code == 0 and not result.out and not result.err, f"{result}")
        drawn = "".join(xml.etree.ElementTree.parse(svg).getroot().itertext())
        check(KERNEL in drawn and "critical path" in drawn, drawn)
        check("digraph" in dot.read_text() and KERNEL in dot.read_text(), dot.read_text())


def test_replayed_iterations_are_told_by_kernel():
    with Laneway() as laneway:
        program = laneway.spawn([laneway.binary("rounds"), "1000000000", "device"], "--replay=always")
        program.wait_for_line("started")
        job = job_of(laneway, program)
        wait_for(lambda: live(laneway)["replay"]["state"] == "replaying", lambda: f"it replays: {live(laneway)}")
        graph = graph_of(laneway, job)
        check(all(node["time_ns"] > 0 for node in graph["nodes"] if node["kind"] == "kernel"), f"{graph}")
        check(program.running(), f"{program.errors()}")


def test_virtual_times_are_called_so():
    with tempfile.NamedTemporaryFile("w") as table:
        table.write("kernel * * 40 0.5\n")
        table.flush()
        with Laneway(softgpu=f"timing={table.name}") as laneway:
            _, job = working(laneway)
            graph = graph_of(laneway, job)
            times = [node["time_ns"] for node in graph["nodes"] if node["kind"] == "kernel"]
            check(graph["virtual_time"] and len(times) == 1 and 40_000 <= times[0] <= 60_000, f"{graph}")
            check("virtual time" in laneway.command("graph", job).out, "the text says so")


def test_kernels_of_a_job():
    with Laneway() as laneway:
        program = laneway.binary("repeat")
        _, job = working(laneway)
        of_job, of_file = (laneway.command("kernels", "--json", what) for what in (job, program))
        check(of_job.code == 0 and not of_job.err, f"{of_job}")
        key = lambda text: sorted(json.dumps(kernel) for kernel in json.loads(text)["kernels"])  # noqa: E731
        check(key(of_job.out) and key(of_job.out) == key(of_file.out), f"{of_job}\n{of_file}")


def test_launches_of_a_job_are_counted_by_kernel():
    with Laneway() as laneway:
        program, job = working(laneway)
        result = laneway.command("kernels", job, "--for", "500ms", "--json")
        check(result.code == 0 and not result.err, f"{result}")
        counted = json.loads(result.out)
        mix = next(kernel for kernel in counted["kernels"] if "Mix" in kernel["name"])
        check(mix["launches"] > 0 and mix["device_ns"] > 0, f"{mix}")
        check(counted["known_launches"] == counted["launches"] == mix["launches"], f"{counted}")
        check(counted["counted_ns"] >= 500_000_000, f"{counted}")
        text = laneway.command("kernels", job, "--for", "100ms")
        check(text.code == 0 and f"{KERNEL}  " in text.out and " launches in 0." in text.out, f"{text}")
        check(program.running(), f"{program.errors()}")


def test_an_idle_job_tells_its_kernels_and_has_no_iteration():
    with Laneway() as laneway:
        stepped = Stepped(laneway, "device", alone(laneway, "device", 3), 3)
        stepped.step()
        job = job_of(laneway, stepped.program)
        kernels = laneway.command("kernels", job)
        check(kernels.code == 0 and "Mix" in kernels.out, f"{kernels}")
        none = laneway.command("graph", job, "--for", "200ms")
        check(none.code == 1 and "no whole iteration" in none.err and len(none.err.splitlines()) == 1, f"{none}")
        stepped.goes_on_to_its_end()


def test_refusals_leave_nothing_behind():
    with Laneway() as laneway:
        program, job = working(laneway)
        missing = laneway.root / "missing" / "graph.svg"
        for arguments, code, word in ((["graph", "999"], 1, "laneway ps"), (["kernels", "999"], 1, "laneway ps"),
                                      (["graph"], 2, "JOB"), (["graph", job, "--for", "soon"], 2, "500ms"),
                                      (["graph", job, "--json", "--dot", "x"], 2, "--dot"),
                                      (["kernels", job, "--for", "soon"], 2, "500ms"),
                                      (["kernels", laneway.binary("repeat"), "--for", "1s"], 1, "running job"),
                                      (["graph", job, "--svg", str(missing)], 1, "cannot write")):
            result = laneway.command(*arguments)
            check(result.code == code and len(result.err.splitlines()) == 1 and word in result.err, f"{result}")
            check(not result.out, f"{result}")
        check(not os.path.exists("x") and not missing.exists(), "a file is left")
        program.kill()
        wait_for(lambda: not laneway.sessions(), "its session is over")
        gone = laneway.command("graph", job)
        check(gone.code == 1 and len(gone.err.splitlines()) == 1, f"{gone}")


if __name__ == "__main__":
    harness.main()
