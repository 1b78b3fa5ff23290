"""Makes the libraries that PyTorch's CUDA build is linked to and that nothing here stands in for (cuDNN, NCCL, cuFFT,
cuSPARSE, ...), as names without code: they are 1.7 GB of wheels, and what the tests run calls none of their functions.
Whoever calls one is told its name and ends.

    vendor_names.py TORCH_LIB_DIRECTORY OUTPUT_DIRECTORY
"""
import collections
import pathlib
import re
import subprocess
import sys

# Symbols without a version node belong to the library with their prefix.
LIBRARIES = {"libcudnn.so.9": "cudnn", "libcufft.so.12": "cufft", "libcusparse.so.12": "cusparse",
             "libcusparseLt.so.0": "cusparseLt", "libcusolver.so.12": "cusolver", "libcufile.so.0": "cuFile",
             "libnccl.so.2": "nccl", "libnvshmem_host.so.3": "nvshmem", "libcupti.so.13": "cupti"}
NODES = {"NVSHMEM": "libnvshmem_host.so.3"}  # nodes that are not called as their library is
REFUSAL = """#include <stdio.h>
#include <stdlib.h>
static void refuse(const char *name) {
  fprintf(stderr, "%s of LIBRARY was called: the tests have only its name\\n", name);
  abort();
}
"""


def wanted(directory):
    """{library: {node or "": {(symbol, is data)}}} that the libraries in `directory` lack."""
    found = collections.defaultdict(lambda: collections.defaultdict(set))
    for library in sorted(directory.glob("*.so")):
        table = subprocess.run(["readelf", "-W", "--dyn-syms", str(library)], check=True, capture_output=True, text=True)
        for row in (line.split() for line in table.stdout.splitlines()):
            if len(row) < 8 or row[6] != "UND":
                continue
            symbol, _, node = row[7].partition("@")
            owner = NODES.get(node, node) if node else owner_of(symbol)
            if owner in LIBRARIES:
                found[owner][node].add((symbol, row[3] == "OBJECT"))
    return found


def owner_of(symbol):
    owners = [library for library, prefix in LIBRARIES.items() if re.match(prefix + "[A-Z_]", symbol)]
    return owners[0] if owners else None


def make(output, library, nodes):
    source = [REFUSAL.replace("LIBRARY", library)]
    for symbol, data in sorted(pair for pairs in nodes.values() for pair in pairs):
        source.append(f"char {symbol}[64];" if data else f'void {symbol}(void) {{ refuse("{symbol}"); }}')
    versions = [f"{node} {{ global: {' '.join(symbol + ';' for symbol, _ in sorted(pairs))} }};"
                for node, pairs in sorted(nodes.items()) if node]
    (output / "names.map").write_text("\n".join(versions) + "\n")
    options = [f"-Wl,--version-script={output}/names.map"] if versions else []
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-x", "c", "-", f"-Wl,-soname,{library}", *options,
                    "-o", str(output / library)], check=True, input="\n".join(source) + "\n", text=True)


def main():
    directory, output = map(pathlib.Path, sys.argv[1:])
    output.mkdir(parents=True, exist_ok=True)
    found = wanted(directory)
    for library in LIBRARIES:
        make(output, library, found[library])


if __name__ == "__main__":
    main()
