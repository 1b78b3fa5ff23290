"""Programs without tricks that once ended a worker which others share: they get what the bare device says."""
from beside import ILLEGAL_ADDRESS, Victim, harness, world
from harness import check, wait_for


def check_as_bare(laneway, result, *command):
    expected = laneway.bare([laneway.binary(command[0]), *command[1:]])
    check((result.code, result.out) == (expected.code, expected.out), f"{result}\non the bare device\n{expected}")
    return expected


def test_copies_of_freed_memory_are_invalid_for_their_program_alone():
    with world() as laneway:
        victim = Victim(laneway)
        victim.computes()
        for call in ("d2d", "default", "rows", "rows_to_host", "d2h", "h2d", "fill"):
            result = laneway.run([laneway.binary("freed_copies"), call])
            check(f"{call}: 1, synchronise 0" in check_as_bare(laneway, result, "freed_copies", call).out, f"{result}")
        # A call that does not wait is told where errors of queued work are told.
        result = laneway.run([laneway.binary("freed_copies"), "async"])
        check((result.code, result.out) == (0, "async: 0, synchronise 1\n"), f"{result}")
        victim.check_right()


def test_a_leading_dimension_that_is_too_large_ends_its_program_alone():
    with world() as laneway:
        victim = Victim(laneway)
        victim.computes()
        faults = f"synchronise {ILLEGAL_ADDRESS}\nallocate {ILLEGAL_ADDRESS}\n"
        for result in laneway.bare([laneway.binary("large_lda")]), laneway.run([laneway.binary("large_lda")]):
            check(result.code == 0 and result.out.endswith(faults), f"{result}")
        check("cublasSgemm_v2 would reach memory" in result.err, f"one sentence must name the call\n{result}")
        victim.check_right()


def test_resets_beside_a_victim_give_all_back():
    # Room for a victim and one round.
    with world(softgpu="memory=320MiB") as laneway:
        victim = Victim(laneway)
        victim.computes()
        check(check_as_bare(laneway, laneway.run([laneway.binary("reset")]), "reset").code == 0, "it comes to its end")
        victim.check_right()
        wait_for(lambda: laneway.used_bytes() == 0, "nothing is left")


def test_a_reset_of_one_device_leaves_the_other():
    with world(softgpu="devices=2,memory=512MiB") as laneway:
        victim = Victim(laneway)
        victim.computes()
        expected = check_as_bare(laneway, laneway.run([laneway.binary("reset_one")], seconds=60), "reset_one")
        check("copy 0: 7\n" in expected.out, f"on the bare device its memory stays\n{expected}")
        victim.check_right()


def test_a_program_that_grows_takes_nothing_from_a_victim():
    with world(softgpu="memory=288MiB") as laneway:
        victim = Victim(laneway)
        grows = laneway.spawn([laneway.binary("grow")])
        grows.wait_for_line("block 1")
        victim.check_right()
        check(check_as_bare(laneway, grows.wait(), "grow").code == 0, "it comes to its end")


if __name__ == "__main__":
    harness.main()
