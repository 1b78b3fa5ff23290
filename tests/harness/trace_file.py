"""Traces of calls, and a file of `laneway trace`, checked to be one that a viewer can draw."""
import collections
import json

from harness.checks import check, wait_for
from harness.laneway import Program


def slices(path):
    """The slices of each named thread of the trace, in the order of their begins; they nest."""
    events = json.loads(path.read_text())["traceEvents"]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    found, open_ends = collections.defaultdict(list), collections.defaultdict(list)
    for event in events:
        if event["ph"] != "X":
            continue
        track = (event["pid"], event["tid"])
        begin_us, end_us = event["ts"], event["ts"] + event["dur"]
        check(track in names and begin_us >= 0 and event["dur"] >= 0, f"{event}")
        ends = open_ends[track]
        while ends and ends[-1] <= begin_us + 0.0005:
            ends.pop()
        check(not ends or end_us <= ends[-1] + 0.0005, f"{event} ends after the slice that it lies in")
        check(not found[names[track]] or begin_us >= found[names[track]][-1][1], f"times go back at {event}")
        ends.append(end_us)
        found[names[track]].append((event["name"], begin_us, end_us))
    return found


def begin_calls(laneway, job, out):
    """`laneway trace JOB --calls`, once it traces the job: it ends with the job."""
    words = [laneway.binary("laneway"), "trace", job, "--calls", "--for", "300s", "--out", str(out)]
    refusal = "another command traces"
    command = Program(words, laneway.environment)

    def begun():
        nonlocal command
        if not command.running():  # the one below came first
            check(refusal in command.errors(), f"{command.errors()}")
            command = Program(words, laneway.environment)
        second = laneway.command("trace", job, "--calls", "--for", "1ms")
        return second.code == 1 and refusal in second.err
    wait_for(begun, "the job is traced")
    return command
