"""Jobs that iterate, when their iterations ran, and what `laneway top`, a trace and /metrics say of them."""
import http.client
import itertools
import json
import os
import signal
import socket

from harness.checks import check, wait_for
from harness.processes import alive

# Iterations of two programs may touch by as much as a clock read lies from what it is to measure.
TOUCH_NS = 20_000
HOLD = ("--hold", "1")  # of iterate: it waits after its first iteration (go_on_together)


def started(laneway, policy, *options):
    """A daemon's command line; the harness starts it."""
    return laneway.start_daemon([laneway.binary("lanewayd"), "--device=soft", f"--policy={policy}", *options])


def iterate(laneway, name, *options):
    """A loop that writes when its iterations ran: the program, and where the times will be."""
    times = laneway.root / f"{name}.times"
    program = laneway.spawn([laneway.binary("iterate"), "--times", str(times), *map(str, options)],
                            holding=HOLD[0] in options)
    return program, times


def go_on_together(programs):
    """Releases programs with HOLD when the last of them has started: none is done before another has begun."""
    for program in programs:
        program.wait_for_line("started")
    for program in programs:
        program.release()


def spans(path):
    return [tuple(map(int, line.split())) for line in path.read_text().splitlines()]


def overlaps(one, other):
    """Pairs of iterations that ran at the same time."""
    return sum(1 for a, b in itertools.product(one, other)
               if min(a[1], b[1]) - max(a[0], b[0]) > TOUCH_NS)


def changes(one, other):
    """How often the device went from one program to the other."""
    order = [name for _, name in sorted([(s, 0) for s in one] + [(s, 1) for s in other])]
    return sum(1 for a, b in itertools.pairwise(order) if a != b)


def sharing(laneway, count, iterations=120):
    """Programs that fill a device of 192 MiB: in one lane they fit, side by side they do not."""
    command = [laneway.binary("iterate"), "--iterations", str(iterations), "--kernel-us", "500", "--persistent", "24",
               "--ephemeral", "48"]
    programs = [laneway.spawn([*command, *HOLD], holding=True) for _ in range(count)]
    go_on_together(programs)
    return command, programs


def all_equal(laneway, command, programs):
    expected = laneway.bare(command)
    for program in programs:
        result = program.wait()
        check((result.code, result.out) == (0, expected.out), f"another result than alone:\n{result}\n{expected}")
    wait_for(lambda: laneway.used_bytes() == 0, "memory is left in use")


def session_of(laneway, program):
    return next((s for s in laneway.sessions() if s["pid"] == program.pid), None)


def top(laneway):
    result = laneway.command("top", "--json")
    check(result.code == 0, f"top --json\n{result}")
    return json.loads(result.out)


def of_job(laneway, job):
    return next(session for session in top(laneway)["sessions"] if session["job"] == job)


def kill_process(laneway, name):
    """Kills the one process of this name and returns its pid."""
    pids = laneway.processes(name)
    check(len(pids) == 1, f"one {name} must run, not {pids}")
    os.kill(pids[0], signal.SIGKILL)
    wait_for(lambda: not alive(pids[0]), f"{name} is gone")
    return pids[0]


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def scrape(port, path="/metrics", method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request(method, path)
    response = connection.getresponse()
    return response.status, response.read().decode()


def check_trace(text):
    """Perfetto's rules, as far as we use them: the slices of a thread nest, times do not go back."""
    events = json.loads(text)["traceEvents"]
    last, ends = 0, {}
    for event in events:
        check(event["ph"] in "MXCi", f"{event}")
        if event["ph"] == "M":
            continue
        check(event["ts"] >= last, f"times go back at {event}")
        last = event["ts"]
        if event["ph"] == "X":
            track = (event["pid"], event["tid"])
            check(event["dur"] >= 0 and event["ts"] >= ends.get(track, 0), f"{event} overlaps the one before")
            ends[track] = event["ts"] + event["dur"]
    return events
