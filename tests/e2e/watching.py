"""What people see and steer: top, why, policy, pause, limit, trace, report, history, metrics."""
import json
import os
import pathlib
import re
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import Laneway, Skip, check, wait_for  # noqa: E402
from harness.jobs import check_trace, free_port, of_job, scrape, top  # noqa: E402

TRAIN = ["train_digits", "--epochs", "1000000"]


def refused(result, code, word):
    check(result.code == code, f"expected exit code {code}\n{result}")
    check(len(result.err.splitlines()) == 1 and word in result.err, f"one sentence with '{word}'\n{result}")


def train(laneway):
    """A training job that goes on until it is killed, and its number."""
    program = laneway.spawn([laneway.binary(TRAIN[0]), *TRAIN[1:]])
    session = wait_for(lambda: next((s for s in top(laneway)["sessions"] if s["pid"] == program.pid), None),
                       "the job appears in top")
    return program, session["job"]


def test_top_shows_iterations():
    with Laneway() as laneway:
        _, job = train(laneway)
        session = wait_for(lambda: (lambda s: s if s["iterations_per_second"] > 0 else None)(of_job(laneway, job)),
                           "iterations are counted")
        check(0 < session["p50_us"] <= session["p99_us"], f"{session}")
        check(session["persistent_bytes"] > 0, f"memory is counted: {session}")
        once = laneway.command("top", "--once")
        check(once.code == 0 and "train_digits" in once.out and "\x1b" not in once.out, f"{once}")
        table = laneway.command("ps")
        check("ITERATIONS" in table.out and "train_digits" in table.out, f"{table}")


def test_replayed_launches_are_counted_and_verified():
    with Laneway() as laneway:
        program = laneway.spawn([laneway.binary("launch_loop"), "100", "20", "stream"], "--replay=verify=4", holding=True)
        wait_for(lambda: "time: 20 iterations" in program.output(), "the iterations have ended")
        session = top(laneway)["sessions"][0]
        replay = session["replay"]
        check(replay["state"] == "replaying" and 1000 < replay["replayed"] <= replay["launches"], f"{replay}")
        check(0 < replay["verified"] < replay["replayed"] and replay["mismatches"] == 0, f"{replay}")
        why = laneway.command("why", str(session["job"]))
        check("% of its launches are replayed" in why.out, f"{why}")


def test_a_loop_is_replayed_from_its_third_iteration_on():
    """Whatever boundaries part the first two. What is held goes where the machine lets a program pause between two
    launches, so a run of five iterations in which that does not happen is waited for."""
    def replayed():
        with Laneway() as laneway:
            program = laneway.spawn([laneway.binary("launch_loop"), "200", "4", "stream"], "--replay=always", holding=True)
            wait_for(lambda: "time: 4 iterations" in program.output(), "the iterations have ended")
            return top(laneway)["sessions"][0]["replay"]["replayed"]
    wait_for(lambda: replayed() > 2 * 200, "launches of three iterations of five are replayed")


def replayed_run(laneway, command, done):
    """The figures of a run under `auto`, what `why` says of it, and the run itself, which waits for its input's end."""
    program = laneway.spawn([laneway.binary(command[0]), *command[1:]], "--replay=auto", holding=True)
    wait_for(lambda: done in program.output(), f"{command} comes to its end")
    session = top(laneway)["sessions"][0]
    why = laneway.command("why", str(session["job"])).out
    program.release()
    program.wait()
    wait_for(lambda: not laneway.sessions(), "the session ends")
    return session["replay"], why


def compared_run(laneway, command, done):
    """The same of a run that has come to a verdict. A comparison in which nothing was repeated, as where the machine let the
    program pause between all launches, has none, and the program may end before the next one."""
    def run():
        replay, why = replayed_run(laneway, command, done)
        return (replay, why) if replay["time_ratio"] > 0 else None
    return wait_for(run, f"{command} is compared with what is forwarded")


def test_a_program_started_again_is_not_compared_again():
    """What a session has measured outlives the session and lanewayd, whether replay was faster or slower."""
    fills = (["fills", "300"], "rounds are over")
    with Laneway() as laneway:
        first, why = compared_run(laneway, *fills)
        check(first["comparisons"] > 0, f"the loop is compared: {first}")
        check(not first["from_earlier_start"] and "earlier start" not in why, f"{first}\n{why}")
        daemon = json.loads(laneway.status())["daemon"]
        check((daemon["replay_verdicts"], daemon["replay_verdicts_max"]) == (1, 256), f"{daemon}")
        laneway.command("stop")
        wait_for(lambda: not laneway.processes(), "lanewayd ends")
        state = laneway.root / "state" / "laneway"
        check((state / "replay_verdicts").stat().st_mode & 0o777 == 0o600, "others may not read it")
        check(not list(state.glob("*.new")), "nothing is left behind")
        laneway.start_daemon()
        again, why = replayed_run(laneway, *fills)
        check(again["comparisons"] == 0 and again["from_earlier_start"], f"nothing is compared: {again}")
        check((again["state"], again["time_ratio"]) == (first["state"], first["time_ratio"]), f"{first}\n{again}")
        check("as measured at an earlier start" in why, why)


def test_a_loop_that_was_faster_is_replayed_at_once():
    """At first its equal launches are taken for iterations, which is compared as well. Measured beside other tests,
    replay may be slower; then no launch is replayed at the next start."""
    loop = (["launch_loop", "500", "200", "stream"], "time: 200 iterations")
    with Laneway() as laneway:
        first, _ = compared_run(laneway, *loop)
        again, _ = replayed_run(laneway, *loop)
        check(again["from_earlier_start"], f"{first}\n{again}")
        check(again["comparisons"] < first["comparisons"], f"the loop is not compared again: {first}\n{again}")
        if again["state"] == "replaying":  # what is held where the machine lets the program pause is sent as it is
            check(again["replayed"] > again["launches"] / 2, f"{again}")
        else:
            check(again["replayed"] < 10 * 500, f"of 250 iterations: {again}")


def test_a_file_of_verdicts_that_is_none_is_replaced_or_left_alone():
    """Cut short, of another version, of another user: one sentence in the log, and programs run."""
    fills = (["fills", "300"], "rounds are over")
    with Laneway() as laneway:
        compared_run(laneway, *fills)
        path = laneway.root / "state" / "laneway" / "replay_verdicts"
        def damaged(change, sentence):
            laneway.command("stop")
            wait_for(lambda: not laneway.processes(), "lanewayd ends")
            change(path.read_bytes())
            laneway.start_daemon()
            log = (laneway.runtime / "log" / "lanewayd.log").read_text()
            check(log.count(sentence) == 1, f"one sentence with '{sentence}':\n{log}")
            return compared_run(laneway, *fills)[0]
        cut = damaged(lambda file: path.write_bytes(file[:50]), "replay_verdicts is cut short")
        check(cut["comparisons"] > 0, f"the program measures anew: {cut}")
        other = damaged(lambda file: path.write_bytes(file[:8] + b"\x63" + file[9:]), "is of another version of Laneway")
        check(other["comparisons"] > 0, f"the program measures anew: {other}")
        check(len(path.read_bytes()) == 88, "the file is replaced, with one verdict")
        if os.geteuid() == 0:
            foreign = damaged(lambda _: os.chown(path, 12345, 12345), "replay_verdicts belongs to another user")
            check(foreign["comparisons"] > 0, f"nothing of it is read: {foreign}")
            check(path.stat().st_uid == 12345, "it is left alone")
        check(sorted(entry.name for entry in path.parent.iterdir()) == ["history.jsonl", "learned.jsonl", path.name],
              "nothing is left behind")


def test_launches_between_fills_and_copies_are_replayed():
    """No more than two launches of this program follow each other, and a graph has three nodes at least."""
    with Laneway() as laneway:
        program = laneway.spawn([laneway.binary("fills"), "200"], "--replay=always", holding=True)
        program.wait_for_line("rounds are over")
        replay = top(laneway)["sessions"][0]["replay"]
        check(replay["launches"] == 1200 and replay["replayed"] > 1000, f"{replay}")


def test_streams_that_take_turns_are_replayed():
    """No two launches of this program that follow each other are on one stream."""
    with Laneway() as laneway:
        program = laneway.spawn([laneway.binary("turns"), "200"], "--replay=always", holding=True)
        program.wait_for_line("rounds are over")
        replay = top(laneway)["sessions"][0]["replay"]
        check(replay["launches"] == 200 * 19 and replay["replayed"] > 200 * 18 / 2, f"{replay}")


def test_top_takes_times_where_the_device_ends_iterations():
    """Not where a program that runs ahead has queued them: an iteration is 20 ms of kernels, seen within 1/16."""
    with Laneway() as laneway:
        program = laneway.spawn([laneway.binary("ahead")])
        program.wait_for_line("queued")
        # So many that the moment at which a worker's thread gets to count one does not matter.
        session = wait_for(lambda: next((s for s in top(laneway)["sessions"] if s["iterations"] >= 80), None),
                           "many have ended")
        check(session["p50_us"] >= 20_000 * 15 / 16, f"{session}")
        check(session["iterations_per_second"] <= 50 * 17 / 16, f"{session}")


def test_launches_of_a_graph_are_iterations():
    """Counted as the program counts its rounds, and where it stops when it is paused."""
    with Laneway() as laneway:
        program = laneway.spawn([laneway.binary("graph_rounds"), "1000000", "device"])

        def rounds():
            return program.output().count("round ")

        def session():
            return next((s for s in top(laneway)["sessions"] if s["pid"] == program.pid), {"iterations": 0})
        wait_for(lambda: session()["iterations"] >= 30, "iterations are counted", 60)
        before, counted = rounds(), session()["iterations"]
        check(before - 5 <= counted <= rounds() + 1, f"{counted} iterations in {before} to {rounds()} rounds")
        job = str(session()["job"])
        check(laneway.command("pause", job).code == 0, "it is paused")
        wait_for(lambda: session()["wait"] == "resume", "it stops at its boundary", 30)
        counted = session()["iterations"]
        check(rounds() - 5 <= counted <= rounds() + 2, f"{counted} iterations in {rounds()} rounds")
        check(laneway.command("resume", job).code == 0, "it is resumed")
        wait_for(lambda: session()["iterations"] > counted + 5, "it goes on", 30)


def test_top_on_a_terminal_ends_with_q():
    import pty
    with Laneway() as laneway:
        master, slave = pty.openpty()
        process = subprocess.Popen([laneway.binary("laneway"), "top"], stdin=slave, stdout=slave, stderr=slave,
                                   env=laneway.environment)
        os.close(slave)
        seen = b""
        while b"no program runs" not in seen:
            seen += os.read(master, 4096)
        check(b"\x1b[?1049h" in seen, f"the other screen is used: {seen}")
        os.write(master, b"q")
        check(process.wait(harness.HANG_SECONDS) == 0, "q ends it")
        os.close(master)


def test_why_and_unknown_jobs():
    with Laneway() as laneway:
        _, job = train(laneway)
        why = laneway.command("why", str(job))
        check(why.code == 0 and "train_digits" in why.out, f"{why}")
        for command in (["why", "999"], ["pause", "999"], ["resume", "999"], ["evict", "999"], ["limit", "999", "1GiB"]):
            refused(laneway.command(*command), 1, "laneway ps")
        refused(laneway.command("resume", str(job)), 1, "not paused")
        refused(laneway.command("limit", str(job), "much"), 2, "6GiB")
        refused(laneway.command("why", "three"), 1, "three")
        check(f"job {job}: train_digits" in laneway.command("why").out, "without a job it tells of all")


def test_commands_without_a_daemon():
    with Laneway(start=False) as laneway:
        for command in (["top"], ["why", "1"], ["policy"], ["trace"], ["pause", "1"],
                        ["report", "--html", "/dev/null"]):
            refused(laneway.command(*command), 1, "no daemon runs")
        check(laneway.command("history").code == 0, "history needs no daemon")
        check(not laneway.processes(), "nothing was started")


def test_policy_is_switched_live():
    with Laneway() as laneway:
        train(laneway)
        for name in ("fifo", "srtf", "fair"):
            check(laneway.command("policy", name).out == name + "\n", f"switched to {name}")
            check(laneway.command("policy").out == name + "\n" and top(laneway)["policy"] == name, "and it says so")
        refused(laneway.command("policy", "alphabet"), 1, "fifo")
        check(json.loads(laneway.status())["daemon"]["policy"] == "fair", "status says it, too")


def test_pause_and_resume():
    with Laneway() as laneway:
        _, job = train(laneway)
        wait_for(lambda: of_job(laneway, job)["iterations"] > 0, "iterations are counted")
        check(laneway.command("pause", str(job)).code == 0, "it is paused")
        wait_for(lambda: of_job(laneway, job)["wait"] == "resume", "it stops at its boundary")
        check(of_job(laneway, job)["state"] == "paused", f"{of_job(laneway, job)}")
        check(all(session["paused"] for session in laneway.sessions()), f"{laneway.sessions()}")
        check("pause" in laneway.command("why", str(job)).out, f"{laneway.command('why', str(job))}")
        before = of_job(laneway, job)["iterations"]
        check(of_job(laneway, job)["iterations"] == before, "a paused job makes no iterations")
        check(laneway.command("resume", str(job)).code == 0, "it is resumed")
        wait_for(lambda: of_job(laneway, job)["iterations"] > before, "it goes on")


def test_limit():
    """A job that runs is limited from now on, and goes on within that."""
    with Laneway() as laneway:
        _, job = train(laneway)
        wait_for(lambda: of_job(laneway, job)["iterations"] > 0, "iterations are counted")
        check(laneway.command("limit", str(job), "3GiB").code == 0, "it is limited")
        session = next(s for s in json.loads(laneway.status())["sessions"] if s["job"] == job)
        check(session["memory_limit_bytes"] == 3 << 30, f"status says it\n{session}")
        before = of_job(laneway, job)["iterations"]
        wait_for(lambda: of_job(laneway, job)["iterations"] > before, "what is within the limit goes on")


def test_trace_and_report():
    with Laneway() as laneway:
        jobs = [train(laneway)[1] for _ in range(2)]
        for job in jobs:
            wait_for(lambda: of_job(laneway, job)["iterations"] > 3, "iterations are counted")
        path = laneway.root / "trace.json"
        result = laneway.command("trace", "--out", str(path))
        check(result.code == 0 and result.out == "", f"{result}")
        events = check_trace(path.read_text())
        names = {event["args"]["name"] for event in events if event["ph"] == "M"}
        check(f"job {jobs[0]}: train_digits" in names, f"{names}")
        check(any(event.get("cat") == "iterations" for event in events), "iterations are in it")
        check(any(event.get("cat") == "lane" for event in events), "grants are in it")
        one = check_trace(laneway.command("trace", str(jobs[0])).out)
        check({event["args"]["job"] for event in one if event["ph"] == "X"} == {jobs[0]}, "only that job")
        refused(laneway.command("trace", "--out", "/no/such/dir/x"), 1, "/no/such/dir/x")
        page = laneway.root / "report.html"
        check(laneway.command("report", "--html", str(page)).code == 0, "the report is written")
        text = page.read_text()
        check("<svg" in text and "train_digits" in text, "it shows the lanes")
        check(not re.search(r"(src|href)\s*=\s*[\"'](?!#)", text) and "<script" not in text, "it loads nothing")
        refused(laneway.command("report"), 2, "--html")


def test_history_outlives_daemons():
    with Laneway() as laneway:
        result = laneway.run([laneway.binary("train_digits"), "--epochs", "2"])
        check(result.code == 0, f"{result}")
        failed = laneway.run(["/bin/sh", "-c", f"{laneway.binary('connect')}; exit 7"])
        check(failed.code == 7, f"{failed}")

        def records():
            return [json.loads(line) for line in laneway.command("history", "--json").out.splitlines()]
        wait_for(lambda: len(records()) == 2, f"both jobs are told: {records()}")
        first, second = records()
        check("train_digits" in first["command"] and first["exit"] == 0, f"{first}")
        check(first["iterations"] > 0 and first["p50_us"] > 0 and first["peak_bytes"] > 0, f"{first}")
        check(second["exit"] == 7 and second["iterations"] == 0, f"{second}")
        laneway.command("stop")
        wait_for(lambda: not laneway.processes(), "the daemon ends")
        check(len(records()) == 2, "no daemon is needed")
        learned = (laneway.root / "state" / "laneway" / "learned.jsonl").read_text().splitlines()
        check(json.loads(learned[0]) == {"laneway_learned": 1}, f"{learned[0]}")
        check(json.loads(learned[1])["iterations"] == first["iterations"], f"{learned[1]}")
        laneway.run([laneway.binary("train_digits"), "--epochs", "2"])
        wait_for(lambda: len(records()) == 3, "the next daemon's jobs follow")
        check("signal" not in laneway.command("history").out, "the table is printed")
        only = laneway.command("history", "-n", "1", "--json").out
        check(len(only.splitlines()) == 1, f"{only}")


def test_full_disk_for_state():
    if os.geteuid() != 0:
        raise Skip("needs root, to mount a small file system")
    with Laneway(start=False) as laneway:
        state = laneway.root / "state"
        state.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(state)], capture_output=True)
        if mounted.returncode != 0:
            raise Skip("may not mount a file system here")
        try:
            (state / "filler").write_bytes(b"x" * 65536)
            for _ in range(2):
                result = laneway.run([laneway.binary("train_digits"), "--epochs", "2"])
                check(result.code == 0, f"running jobs are untouched\n{result}")
            log = pathlib.Path(laneway.runtime / "log" / "lanewayd.log")
            wait_for(lambda: "running jobs go on" in log.read_text(), "the log says it")
            check(laneway.command("history").code == 0, "history says that there is none")
            (state / "filler").unlink()
            laneway.run([laneway.binary("connect")])
            wait_for(lambda: laneway.command("history", "--json").out != "", "with room it goes on")
            laneway.command("stop")
            wait_for(lambda: not laneway.processes(), "the daemon ends")
        finally:
            subprocess.run(["umount", "-l", str(state)], check=True)


def parse_metrics(text):
    """Prometheus's text format; a value per name and labels."""
    values, types = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            check(name not in types, f"{name} is declared twice")
            types[name] = kind
            continue
        if line.startswith("# HELP "):
            continue
        match = re.fullmatch(r"([a-z_:][a-z0-9_:]*)(\{[a-z_]+=\"[^\"\\]*\"(?:,[a-z_]+=\"[^\"\\]*\")*\})? ([0-9.eE+-]+)",
                             line)
        check(match, f"no metric: {line}")
        name, labels, value = match.groups()
        check(re.sub("_(sum|count)$", "", name) in types or name in types, f"{name} has no type")
        check((name, labels) not in values, f"{line} is there twice")
        values[name, labels] = float(value)
    return values


def test_metrics():
    port = free_port()
    with Laneway(start=False) as laneway:
        laneway.start_daemon([laneway.binary("lanewayd"), "--device=soft", f"--metrics={port}"])
        _, job = train(laneway)
        wait_for(lambda: of_job(laneway, job)["iterations"] > 0, "iterations are counted")
        status, text = scrape(port)
        values = parse_metrics(text)
        check(status == 200 and any(name == "laneway_info" for name, _ in values), text)
        counted = [value for (name, labels), value in values.items()
                   if name == "laneway_session_iterations_total" and f'job="{job}"' in labels]
        check(len(counted) == 1 and counted[0] > 0, text)
        check(scrape(port, "/")[0] == 404 and scrape(port, "/metrics", "POST")[0] == 405, "only GET /metrics")
        idle = socket.create_connection(("127.0.0.1", port))  # one that says nothing delays nobody
        idle.send(b"GET /metrics HTTP/1.1\r\n")
        check(laneway.command("status").code == 0 and scrape(port)[0] == 200, "the daemon goes on")
        idle.close()


def test_metrics_port_in_use():
    with socket.socket() as server, Laneway(start=False) as laneway:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        result = laneway.run(["/bin/true"], f"--metrics={port}")
        check(result.code == 125 and str(port) in result.err and "--metrics" in result.err, f"{result}")
        refused(laneway.run(["/bin/true"], "--metrics=70000"), 125, "65535")


if __name__ == "__main__":
    harness.main()
