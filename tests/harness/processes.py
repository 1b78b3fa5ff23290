"""What /proc says of processes."""
import os
import pathlib


def alive(pid):
    """True until the last of its threads has ended: until then its files and locks are its own."""
    state = state_of(pid)
    if state != "Z":
        return state not in (None, "X")
    try:
        return len(os.listdir(f"/proc/{pid}/task")) > 1  # the first thread alone is a zombie
    except OSError:
        return False


def state_of(pid):
    """The state letter of a process (R, S, T, Z, ...), or None when there is no such process."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return text.rpartition(")")[2].split()[0]


def children_of(pid):
    try:
        return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def name_of(pid):
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")).removesuffix(" (deleted)")
    except OSError:
        return None


def open_files(pid):
    """What the descriptors of a process lead to, less those that it closes meanwhile; nothing when it has ended."""
    targets = []
    try:
        for entry in list(pathlib.Path(f"/proc/{pid}/fd").iterdir()):
            try:
                targets.append(os.readlink(entry))
            except FileNotFoundError:
                continue
    except OSError:
        if alive(pid):
            raise
    return targets
