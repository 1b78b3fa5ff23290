"""Hostile clients beside a program that computes: each gets an error of its own, and nothing else changes."""
import itertools
import pathlib
import re

from beside import ILLEGAL_ADDRESS, LANE_VICTIM, Attack, Victim, check_said, counts, harness, world
from harness import check, wait_for

ONE_LANE = ("--lanes=1", "--slice=5")
POLICIES = ("fair", "rr", "shares", "fifo")
ADDRESS_SENTENCE = "would reach memory that this program has not allocated"
INVALID_VALUE, OUT_OF_MEMORY, INVALID_HANDLE, RPC_FAILURE = 1, 2, 400, 806


# --- lanes -----------------------------------------------------------------------------------------------------------


def attacks_a_lane(laneway, *mode, run=None):
    """While the victim has turns in the lane, from its second iteration to its last. What the attack has said."""
    victim = Victim(laneway, options=LANE_VICTIM)
    attack = Attack(laneway, *mode, run=run).ready()
    attack.go()
    victim.check_right()
    check(attack.program.running(), f"the attack ended before its victim\n{attack.program.output()}")
    return attack.stop()


def under_all_policies(mode, name, statuses, *said):
    """In each the calls of this name get these statuses, all of them, and no others."""
    with world(POLICIES[0], *ONE_LANE) as laneway:
        for policy in POLICIES:
            check(laneway.command("policy", policy).code == 0, f"the policy becomes {policy}")
            lines = attacks_a_lane(laneway, mode)
            got = counts(lines, name)
            print(f"{policy}: {name} {got}", flush=True)
            check(set(got) == statuses, f"{policy}: {name} {got}\n" + "\n".join(lines))
            check_said(lines, *said, "loss 0 ")


def test_a_session_outside_a_lane_takes_nothing_out_of_it():
    under_all_policies("keep", "keep", {0}, f"keep without a lane {INVALID_VALUE}",
                       f"keep outside the lane {INVALID_VALUE}", "give back 0", f"keep after the lane {INVALID_VALUE}")


def test_a_session_outside_a_lane_writes_nothing_into_it():
    under_all_policies("write_value", "write value", {0}, "error 0")


def test_a_message_is_served_as_it_was_looked_at():
    # A fill in its turn, or a record of no event: never a fill that passed for a record.
    under_all_policies("peek", "served", {0, INVALID_HANDLE})


LIMITED = ("--memory=12MiB",)  # above the attack's lane and below what it keeps


def test_a_block_that_is_refused_memory_keeps_its_own_lane_alone():
    with world("fair") as laneway:
        victims = [Victim(laneway, options=LANE_VICTIM) for _ in range(2)]
        attack = Attack(laneway, "pin", "once", run=LIMITED).ready()
        attack.go().said("pinned")
        for victim in victims:
            victim.check_right()
        check(attack.program.running(), "the attack keeps its lane meanwhile")
        check_said(attack.stop(), f"keep {OUT_OF_MEMORY}: 4", "loss 0 ")


def test_blocks_that_are_refused_memory_pass_the_lane_on():
    with world("fair", *ONE_LANE) as laneway:
        lines = attacks_a_lane(laneway, "pin", "again", run=LIMITED)
        check(set(counts(lines, "keep")) == {OUT_OF_MEMORY}, f"the limit is reached each time\n{lines}")
        check_said(lines, "loss 0 ")


# --- memory ----------------------------------------------------------------------------------------------------------


def test_addresses_without_memory_are_invalid_and_no_more():
    with world() as laneway:
        victim, attack = Victim(laneway), Attack(laneway, "copy").ready()
        victim.computes()
        lines = attack.go().stop()
        for what, call in itertools.product(
                ("unbacked", "half backed", "in the lane", "of another", "at the end"),
                ("copy from", "copy to", "staged in", "staged out", "rows from", "fill", "write value")):
            # A word fits before the end of what is backed.
            status = 0 if (what, call) == ("half backed", "write value") else INVALID_VALUE
            check_said(lines, f"{call} {what} {status}")
        check_said(lines, f"copy of 2^64-1 {INVALID_VALUE}", f"rows of 2^63 {INVALID_VALUE}", "ping 0",
                   f"error {INVALID_VALUE}", "loss 0 ")
        victim.check_right()


def library_call_ends_its_session(way):
    with world() as laneway:
        victim = Victim(laneway)
        attack = Attack(laneway, "blas", way, 0).ready()
        check_said(attack.lines, "slot 1", "own copy 0")
        victim.computes()
        lines = attack.go().stop()
        check(attack.loss() == ILLEGAL_ADDRESS and ADDRESS_SENTENCE in lines[-1], "\n".join(lines))
        victim.check_right()


def test_a_stride_reads_no_neighbour():
    library_call_ends_its_session("steal")


def test_a_stride_writes_no_neighbour():
    library_call_ends_its_session("poke")


def test_a_vector_that_is_not_there_ends_its_session_alone():
    library_call_ends_its_session("crash")


def test_the_files_of_a_session_keep_their_size():
    with world() as laneway:
        victim, attack = Victim(laneway), Attack(laneway, "truncate").ready()
        victim.computes()
        lines = attack.go().stop()
        check(lines.count("shrink: errno 1, grow: errno 1") == 2, f"both files are sealed\n{lines}")
        check_said(lines, "pinned 0", "punch pinned: errno 0", "punch staging: errno 0", "read 1: 0", "loss 0 ",
                   "punch all: errno 0")
        check(lines[-1].startswith(f"loss {RPC_FAILURE} ") and "impossible length" in lines[-1], "\n".join(lines))
        victim.check_right()


# --- without end -----------------------------------------------------------------------------------------------------


def resident_bytes(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^VmRSS:\s+(\d+) kB", text, re.MULTILINE).group(1)) << 10


def asks_without_end(kind, *said, bytes_max):
    """Beside a victim, and what it holds goes with it."""
    with world("fair", "--kill-timeout=60") as laneway:
        worker = laneway.processes("laneway-worker")[0]
        had = resident_bytes(worker)
        victim, attack = Victim(laneway), Attack(laneway, "many", kind).ready()
        used = laneway.used_bytes()
        attack.go()
        victim.check_right()
        attack.said("done")
        grown = resident_bytes(worker) - had
        check(grown < bytes_max, f"the worker has grown by {grown >> 20} MiB")
        check_said(attack.lines, *said, "loss 0 ")
        check(used > 0 and laneway.run([laneway.binary("pinned")], seconds=60).code == 0, "beside it a program ends")
        lines = attack.lines
        attack.program.kill()
        wait_for(lambda: laneway.sessions() == [], "its session ends with it")
        wait_for(lambda: laneway.used_bytes() == 0, "its memory comes back")
        return lines


def test_streams_end_with_their_completion_words():
    asks_without_end("streams", "made 1008", f"one more {INVALID_VALUE}", f"a name beyond {INVALID_HANDLE}",
                     bytes_max=256 << 20)


def test_destroyed_streams_that_wait_are_counted():
    asks_without_end("ending", "made 1024", f"one more {OUT_OF_MEMORY}", bytes_max=256 << 20)


def test_events_end():
    asks_without_end("events", "ping 0", "error 0", f"one more {INVALID_HANDLE}", bytes_max=512 << 20)


def test_nodes_of_graphs_end():
    asks_without_end("graphs", f"seal {OUT_OF_MEMORY}", "seal of another 0", bytes_max=1 << 30)


def test_work_behind_a_held_stream_ends():
    lines = asks_without_end("memsets", bytes_max=256 << 20)
    sent = int(next(line for line in lines if line.startswith("sent ")).split()[1])
    check(1000 <= sent < 100_000, f"{sent} fills were taken")


# --- chunks ----------------------------------------------------------------------------------------------------------


def test_a_chunk_that_makes_no_sense_ends_its_own_session():
    """Each way of it has a session of its own, and each session a sentence."""
    with world() as laneway:
        victim, attack = Victim(laneway, "--replay=always"), Attack(laneway, "chunks").ready()
        victim.computes()
        lines = attack.go().stop()
        ways, losses = lines[1::2], lines[2::2]
        check(len(ways) == len(losses) > 20, "\n".join(lines))
        for way, loss in zip(ways, losses):
            check(way.endswith(": lost"), "\n".join(lines))
            check(loss.startswith(f"loss {RPC_FAILURE} laneway: ") and loss.endswith("ends"), f"{way}: {loss}")
        victim.check_right()


def test_chunks_and_orders_without_end_are_bounded():
    with world("fair", "--kill-timeout=60") as laneway:
        worker = laneway.processes("laneway-worker")[0]
        had = resident_bytes(worker)
        victim, attack = Victim(laneway, "--replay=always"), Attack(laneway, "chunk_flood").ready()
        victim.computes()
        attack.go().said("done")
        grown = resident_bytes(worker) - had
        check(grown < 128 << 20, f"the worker has grown by {grown >> 20} MiB")
        check_said(attack.lines, "ping 0", "loss 0 ")
        victim.check_right()
        attack.stop()
        wait_for(lambda: laneway.sessions() == [] and laneway.used_bytes() == 0, "its session ends, and its memory goes")


# --- ends ------------------------------------------------------------------------------------------------------------


def check_blameless(laneway):
    log = (laneway.runtime / "log" / "lanewayd.log").read_text(errors="replace")
    check("left work" not in log, f"a session is blamed:\n{log}")


def test_a_held_stream_holds_its_own_session_alone():
    with world("fair", "--kill-timeout=8") as laneway:
        attack = Attack(laneway, "hold").ready()
        check_said(attack.lines, "wait 0")
        used = laneway.used_bytes()
        victim = Victim(laneway)
        for _ in range(2):
            check(laneway.run([laneway.binary("pinned")], seconds=60).code == 0, "pinned memory goes beside it")
        victim.check_right()
        wait_for(lambda: len(laneway.sessions()) == 1 and laneway.used_bytes() == used, "the others' ends", 8)
        check_said(attack.stop(), "ping 0", "loss 0 ")
        wait_for(lambda: laneway.sessions() == [] and laneway.used_bytes() == 0, "its own end", 8)
        check_blameless(laneway)


def test_a_wait_of_a_raw_client_ends_with_it():
    with world("fair", "--kill-timeout=20") as laneway:
        victim = Victim(laneway)
        victim.computes()
        used = laneway.used_bytes()
        for _ in range(3):
            check_said(Attack(laneway, "wait").stop(), "wait 0")
            wait_for(lambda: len(laneway.sessions()) <= 1 and laneway.used_bytes() <= used, "its session ends", 15)
        victim.check_right()
        check_blameless(laneway)


def takes_back_acknowledgements(ticket, status=0):
    with world("fair", "--kill-timeout=20") as laneway:
        victim, attack = Victim(laneway), Attack(laneway, "host_call", ticket)
        victim.computes()
        pid = attack.program.pid
        result = attack.program.wait(harness.HANG_SECONDS)
        check(result.code == 0 and f"call {status}\n" in result.out, f"{result}")
        wait_for(lambda: pid not in {s["pid"] for s in laneway.sessions()}, "its session ends beside the helper", 15)
        victim.check_right()
        check("helper ends" not in attack.lines, "the helper has gone on until now")
        attack.program.release()
        wait_for(lambda: "helper ends" in attack.lines, "the helper ends")
        check_blameless(laneway)


def test_an_acknowledgement_that_is_taken_back_holds_no_stream():
    takes_back_acknowledgements(1)


def test_the_last_ticket_holds_no_stream():
    takes_back_acknowledgements((1 << 63) - 1)


def test_a_ticket_that_no_acknowledgement_reaches_is_invalid():
    takes_back_acknowledgements(1 << 63, INVALID_VALUE)


def test_a_session_that_cannot_be_told_of_its_loss_ends():
    with world() as laneway:
        victim = Victim(laneway)
        used = laneway.used_bytes()
        attack = Attack(laneway, "spin").ready()
        pid = attack.program.pid
        check(laneway.used_bytes() == used + (64 << 20), "it has memory")
        victim.computes()
        attack.go().said("sent")

        def is_lost():
            session = next(s for s in laneway.sessions() if s["pid"] == pid)
            return session["state"] == "lost" and session["device_bytes"] == 0
        wait_for(is_lost, lambda: f"its session ends: {laneway.sessions()}", 15)
        check(attack.program.running(), "its program goes on")
        victim.check_right()
        check_said(attack.stop(), "loss 0 ")


if __name__ == "__main__":
    harness.main()
