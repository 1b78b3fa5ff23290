"""Hellos that lie, connections without a hello and garbage for one, beside a program that computes."""
import array
import contextlib
import json
import os
import pathlib
import random
import re
import socket
import struct

from beside import Attack, Victim, check_said, harness, world
from harness import check, wait_for
from harness.jobs import free_port, scrape


def test_a_program_of_its_own_context_speaks_for_itself_alone():
    with world() as laneway:
        victim = Victim(laneway)
        used, session = laneway.used_bytes(), victim.session()["id"]
        attack = Attack(laneway, "in_process", session).ready()
        match = re.fullmatch(r"welcome 0, session (\d+)", attack.lines[0])
        check(match and int(match.group(1)) != session, f"it is a session of its own\n{attack.lines}")
        liar = next(s for s in laneway.sessions() if s["pid"] == attack.program.pid)
        check(liar["in_process"] and liar["device_bytes"] == 0 and laneway.used_bytes() == used,
              f"what it says to have is not counted\n{liar}")
        victim.computes()
        attack.go().said("lies 5")
        log = laneway.runtime / "log" / "lanewayd.log"
        wait_for(lambda: f"session {liar['id']} says what no program says" in log.read_text(), "the lies arrive")
        victim.check_right()
        wait_for(lambda: laneway.used_bytes() == 0, "nothing is held")
        check(json.loads(laneway.status())["faults"] == [], "no session is at fault")
        attack.stop()


def joins_no_job(way, what):
    with world() as laneway:
        victim = Victim(laneway, "--memory=256MiB")
        job = victim.session()["job"]
        attack = Attack(laneway, "job", way, what(victim, job)).ready()
        thief = next(s for s in laneway.sessions() if s["pid"] == attack.program.pid)
        check(thief["job"] != job and thief["memory_limit_bytes"] == 0, f"it is a job of its own\n{thief}")
        check(victim.session()["memory_limit_bytes"] == 256 << 20, "the victim's limit is what it was")
        victim.computes()
        check_said(attack.go().stop(), "map 0", "loss 0 ")
        victim.check_right()


def test_a_job_is_not_joined_by_its_number():
    joins_no_job("number", lambda victim, job: job)


def ticket_of(pid):
    entries = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return next(e for e in entries if e.startswith(b"LANEWAY_JOB=")).decode().split("=", 1)[1]


def test_a_ticket_that_was_changed_joins_no_job():
    joins_no_job("forged", lambda victim, job: ticket_of(victim.program.pid))


def connections(laneway, count):
    path = str(laneway.runtime / "lanewayd.sock")
    for _ in range(count):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.connect(path)  # with a limit of time it would not wait for a place among those that wait
        connection.settimeout(harness.HANG_SECONDS)
        yield connection


def test_connections_without_a_hello_keep_no_program_out():
    with world() as laneway:
        victim = Victim(laneway)
        idle = list(connections(laneway, 500))
        victim.computes()
        check(laneway.run([laneway.binary("connect")], seconds=60).code == 0, "a program gets in beside them")
        held = len(os.listdir(f"/proc/{laneway.processes('lanewayd')[0]}/fd"))
        check(held < 300, f"lanewayd has {held} descriptors")
        victim.check_right()
        for connection in idle:
            connection.close()


def test_garbage_for_a_hello_is_refused(seed):
    numbers = random.Random(harness.chosen(seed))
    with world() as laneway:
        victim = Victim(laneway)
        victim.computes()
        sent = 0
        for connection in connections(laneway, 600):
            count = numbers.choice((0, 1, 11, 12, 100, 4096, 65536, 65537, 200_000))
            data = numbers.randbytes(count)
            if numbers.random() < .5:
                data = struct.pack("<III", 0x4c4e4849, numbers.choice((1, 2, 0, 2**32 - 1)),
                                   numbers.choice((16, 328, count))) + data[12:]
            files = [os.open("/dev/null", os.O_RDONLY) for _ in range(numbers.choice((0, 0, 1, 4, 5, 100, 253)))]
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))] if files else []
            with contextlib.suppress(OSError):  # longer than a packet may be
                sent += connection.sendmsg([data], rights) > 0
            for file in files:
                os.close(file)
            connection.close()
        check(sent > 100, f"only {sent} packets were sent")
        check(laneway.run([laneway.binary("connect")], seconds=60).code == 0, "a program gets in afterwards")
        victim.check_right()


def test_half_requests_do_not_stop_metrics():
    port = free_port()
    with world("fair", f"--metrics={port}") as laneway:
        victim = Victim(laneway)
        held = []
        for _ in range(40):  # more than it takes at once
            held.append(socket.create_connection(("127.0.0.1", port), timeout=harness.HANG_SECONDS))
            held[-1].sendall(b"GET ")
        victim.computes()
        check(laneway.command("status").code == 0, "the daemon goes on")
        for connection in held:
            connection.close()
        status, text = scrape(port)
        check(status == 200 and "laneway_info" in text, f"{status}\n{text}")
        victim.check_right()


if __name__ == "__main__":
    harness.main()
