"""Recorded functions: what a program's loop computed, a served function computes without the program."""
import csv
import gzip
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "functions" / "client"))
import harness  # noqa: E402
import laneway_function  # noqa: E402
from harness import Laneway, Program, check, wait_for  # noqa: E402

PIXELS = 64


def record(laneway, name, *command):
    return laneway.command("record", "--name", name, "--", *command, seconds=harness.PROGRAM_SECONDS)


def recorded(laneway, name, *command):
    result = record(laneway, name, *command)
    check(result.code == 0, f"{name} must be recorded\n{result}")
    return result


def serve(laneway, name):
    program = Program([laneway.binary("laneway"), "serve", name], laneway.environment)
    laneway.programs.append(program)
    program.wait_for_line(f"serving {name} at {laneway.runtime}/function-{name}.sock")
    return program


def end(program):
    program.process.terminate()
    result = program.wait()
    check(result.code == 0, f"laneway serve must end well\n{result}")


def connect(laneway, name):
    return laneway_function.connect(name, str(laneway.runtime))


def check_refused(laneway, result, name, *words):
    """One sentence, no success, and nothing that a later command would take for a function."""
    check(result.code != 0, f"{name} must not be recorded\n{result}")
    said = [line for line in result.err.splitlines() if line.startswith("laneway:")]
    check(said and all(word in said[-1] for word in words), f"the sentence must have {words}\n{result}")
    directory = laneway.root / "state" / "laneway" / "functions"
    left = [path.name for path in directory.iterdir()] if directory.exists() else []
    check(not left, f"files are left: {left}")


def lines_of(result):
    return dict(line.split(" ", 1) for line in result.out.splitlines() if " " in line)


# --- what can be recorded --------------------------------------------------------------------------------------------

def test_digits_are_answered_as_the_program_answers():
    requests = 300
    with Laneway() as laneway:
        result = recorded(laneway, "digits", laneway.binary("infer_digits"), "--requests", str(requests))
        right = int(result.out.split(" requests, ")[1].split(" right")[0])
        manifest = json.loads(laneway.command("record", "--show", "digits").out)
        check([one["shape"] for one in manifest["inputs"]] == [[PIXELS]], f"one image is the input: {manifest}")
        check([one["shape"] for one in manifest["outputs"]] == [[10]], f"ten logits are the output: {manifest}")
        with gzip.open(laneway.build / "share" / "laneway" / "data" / "digits.csv.gz", "rt") as file:
            rows = [[int(value) for value in row] for index, row in enumerate(csv.reader(file)) if index % 5 == 0]
        server = serve(laneway, "digits")
        served = 0
        with connect(laneway, "digits") as digits:
            for index in range(requests):
                row = rows[index % len(rows)]
                image = struct.pack(f"{PIXELS}f", *(value / 16 for value in row[:PIXELS]))
                logits = struct.unpack("10f", digits.call(input0=image)["output0"])
                served += logits.index(max(logits)) == row[PIXELS]
        check(served == right, f"the program has {right} of {requests} right, the function {served}")
        end(server)


def check_way(way):
    """The recorded function gives the bytes that the program printed for its last request."""
    with Laneway() as laneway:
        printed = lines_of(recorded(laneway, "answer", laneway.binary("answer"), way))
        server = serve(laneway, "answer")
        with connect(laneway, "answer") as function:
            inputs = {"input0": bytes.fromhex(printed["request"])}
            if way == "scalar":
                inputs["scalar0"] = struct.pack("f", 300.0)
            for _ in range(2):
                answer = function.call(**inputs)["output0"].hex()
                check(answer == printed["answer"], f"{way}: the program gave {printed['answer']}, the function {answer}")
        end(server)


def test_a_plain_loop():
    check_way("plain")


def test_parameters_that_differ_are_scalar_inputs():
    check_way("scalar")


def test_addresses_in_memory_are_moved():
    check_way("through")


def test_memory_of_one_iteration():
    check_way("temporary")


def test_a_graph_of_the_programs_own():
    check_way("graph")


# --- what cannot -----------------------------------------------------------------------------------------------------

def test_what_no_function_can_do_is_refused():
    with Laneway() as laneway:
        answer = laneway.binary("answer")
        for way, words in (("no-input", ["uploads an input"]), ("no-output", ["reads an output back"]),
                           ("middle", []), ("state", ["depend on the requests before"])):
            check_refused(laneway, record(laneway, "answer", answer, way), "answer", "not recorded", *words)
        check_refused(laneway, record(laneway, "answer", answer, "plain", "2"), "answer", "no iterations that repeat")
        check_refused(laneway, record(laneway, "answer", "/bin/true"), "answer", "no call of CUDA")
        failed = record(laneway, "answer", answer, "fail")
        check(failed.code == 3, f"a failed program's exit code must pass\n{failed}")
        check_refused(laneway, failed, "answer", "exit code 3")
        check(laneway.command("record", "--name", "../x", "--", answer).code == 2, "a name is no path")


def test_a_damaged_function_is_refused():
    with Laneway() as laneway:
        recorded(laneway, "answer", laneway.binary("answer"))
        directory = laneway.root / "state" / "laneway" / "functions"
        path, manifest = directory / "answer.function", directory / "answer.json"
        whole, text = path.read_bytes(), manifest.read_text()

        def check_not_served(*words):
            result = laneway.command("serve", "answer")
            check(result.code == 1, f"it must not be served\n{result}")
            check(len(result.err.splitlines()) == 1 and all(word in result.err for word in words),
                  f"one sentence must have {words}\n{result}")
            check(not list(laneway.runtime.glob("function-*.sock")), "a socket is left")

        path.write_bytes(whole[:len(whole) // 2])
        check_not_served("cut short")
        path.write_bytes(whole[:8] + b"\2" + whole[9:])
        check_not_served("another version")
        path.write_bytes(whole)
        manifest.write_text(text.replace("8", "9"))
        check_not_served("input0 is f32 [9], but it has 32 bytes")
        manifest.write_text("{")
        check_not_served("no JSON")
        manifest.write_text(text)
        if os.geteuid() == 0:
            os.chown(path, 12345, 12345)
            check_not_served("belongs to another user")
        result = laneway.command("serve", "nothing")
        check(result.code == 1 and "there is no function nothing" in result.err, f"{result}")


# --- serving ---------------------------------------------------------------------------------------------------------

def npy(values):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(values)},), }}\n".encode()
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header + struct.pack(f"{len(values)}f", *values)


def test_call_reads_and_writes_files():
    with Laneway() as laneway:
        recorded(laneway, "answer", laneway.binary("answer"))
        x, y = laneway.root / "x.npy", laneway.root / "y.npy"
        x.write_bytes(npy([1.0] * 8))
        result = laneway.command("call", "answer", "--input", str(x))
        check(result.code == 1 and "is not served" in result.err, f"{result}")
        server = serve(laneway, "answer")
        again = laneway.command("serve", "answer")
        check(again.code == 1 and "is served already" in again.err, f"a second server must be refused\n{again}")
        result = laneway.command("call", "answer", "--input", str(x), "--output", f"output0={y}")
        check(result.code == 0, f"{result}")
        values = struct.unpack("8f", y.read_bytes()[-32:])
        check(values == tuple((1.0 + i * 0.25) * 2 + 0.75 for i in range(8)), f"{values}")
        result = laneway.command("call", "answer", "--input", f"input0={x}")
        check(result.code == 0 and result.out.startswith("output0 f32 [8]: 2.75 3.25"), f"{result}")
        x.write_bytes(npy([1.0] * 7))
        text = laneway.root / "text"
        text.write_text("no array")
        for wanted, arguments in (("input0 is f32 [8], not f32 [7]", ["--input", str(x)]),
                                  ("is missing", []),
                                  ("there is no file", ["--input", str(y) + ".none"]),
                                  ("no .npy file", ["--input", str(text)])):
            result = laneway.command("call", "answer", *arguments)
            check(result.code == 1 and wanted in result.err, f"'{wanted}' must be said\n{result}")
        end(server)
        check(not list(laneway.runtime.glob("function-*.sock")), "the socket must go")


def test_a_lost_worker_ends_no_connection():
    with Laneway() as laneway:
        printed = lines_of(recorded(laneway, "answer", laneway.binary("answer")))
        server = serve(laneway, "answer")
        request = bytes.fromhex(printed["request"])
        with connect(laneway, "answer") as function:
            for _ in range(3):
                check(function.call(input0=request)["output0"].hex() == printed["answer"], "before the loss")
                for pid in laneway.processes("laneway-worker"):
                    os.kill(pid, signal.SIGKILL)
                answer = function.call(input0=request)["output0"].hex()
                check(answer == printed["answer"], f"after the loss: {answer}")
        end(server)


def test_several_clients_at_once():
    with Laneway() as laneway:
        printed = lines_of(recorded(laneway, "answer", laneway.binary("answer")))
        server = serve(laneway, "answer")
        request = bytes.fromhex(printed["request"])
        clients = [connect(laneway, "answer") for _ in range(8)]
        for _ in range(20):
            for client in clients:  # all ask before the first reads
                tensor = client.inputs[0]
                client.socket.sendall(frame_of(tensor, request))
            for client in clients:
                body = client._receive(struct.unpack("<I", client._receive(4))[0])
                check(client._answer(body)["output0"].hex() == printed["answer"], "each gets its answer")
        clients[0].socket.sendall(struct.pack("<I", 5) + b"12345")
        body = clients[0]._receive(struct.unpack("<I", clients[0]._receive(4))[0])
        check(b"no request" in body, f"nonsense is refused: {body}")
        clients[1].socket.sendall(struct.pack("<I", 0xffffffff))
        check(clients[1].socket.recv(1) == b"", "a frame that is too long ends the connection")
        for client in clients:
            client.close()
        end(server)


def frame_of(tensor, data):
    name = tensor.name.encode()
    body = struct.pack("<II", 1, 1) + struct.pack("<HBBIQQ", len(name), 1, 1, 0, tensor.shape[0], len(data)) + name + data
    return struct.pack("<I", len(body)) + body


def test_a_client_in_c():
    with Laneway() as laneway:
        printed = lines_of(recorded(laneway, "answer", laneway.binary("answer")))
        server = serve(laneway, "answer")
        result = subprocess.run([laneway.binary("ask"), "answer", printed["request"]], env=laneway.environment,
                                capture_output=True, text=True, timeout=harness.HANG_SECONDS)
        check(result.stdout.strip() == printed["answer"], f"{result}")
        result = subprocess.run([laneway.binary("ask"), "answer", "00"], env=laneway.environment, capture_output=True,
                                text=True, timeout=harness.HANG_SECONDS)
        check(result.returncode == 1 and "not f32 [0]" in result.stderr, f"{result}")
        end(server)


if __name__ == "__main__":
    harness.main()
