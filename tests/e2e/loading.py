"""The driver is found wherever a program, or the library that it uses, would have found the vendor's."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import Laneway, check  # noqa: E402

MODES = ("--mode=shared", "--mode=in-process")
PRELOADED = {"--mode=shared": "liblaneway_client.so", "--mode=in-process": "liblaneway_preload.so"}


def expected(name, mode, *words):
    lines = ["init 0", f"name {name[:15]}", *(f"word '{word}'" for word in words), f"preloaded {PRELOADED[mode]}"]
    return "".join(line + "\n" for line in lines)


def check_found(laneway, mode, name, command, *words):
    result = laneway.run([*command, *words], mode)
    check((result.code, result.out, result.err) == (0, expected(name, mode, *words), ""),
          f"{mode} {command} must reach the device, with its own words, name and children:\n{result}")


def test_a_run_path_to_another_driver():
    """The older kind of run path precedes the library path: the program starts again with the facades preloaded."""
    with Laneway() as laneway:
        other = laneway.bare([laneway.binary("find_linked_rpath")])
        check("init 100" in other.out, f"on the bare device the run path must win:\n{other}")
        for mode in MODES:
            for name in ("find_linked_rpath", "find_linked_runpath"):
                check_found(laneway, mode, name, [laneway.binary(name)], "one", "", "t w o")


def test_another_library_path():
    """A script that sets a library path of its own, as some programs are started by."""
    with Laneway() as laneway:
        private = os.path.join(os.path.dirname(laneway.binary("find_linked")), "another_driver")
        script = f"LD_LIBRARY_PATH={private} exec {laneway.binary('find_linked')} \"$@\""
        for mode in MODES:
            check_found(laneway, mode, "find_linked", ["/bin/sh", "-c", script, "sh"], "a", "b")


def test_a_loader_that_is_started_by_its_name():
    with Laneway() as laneway:
        loader = os.path.realpath("/lib64/ld-linux-x86-64.so.2")
        command = [loader, laneway.binary("find_linked_rpath")]
        for mode in MODES:
            check_found(laneway, mode, os.path.basename(loader), command, "a", "b")


def test_variables_of_the_drivers_names():
    """As e2e.equal.find_variables, in a context of its own."""
    with Laneway() as laneway:
        for name in ("find_variables", "find_variables_linked"):
            command = [laneway.binary(name)]
            bare, result = laneway.bare(command), laneway.run(command, "--mode=in-process")
            check((result.code, result.out) == (bare.code, bare.out), f"{name}:\n{result}\non the bare device:\n{bare}")


if __name__ == "__main__":
    harness.main()
