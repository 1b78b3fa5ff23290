"""The ratchet of scripts/tidy: a number for each place that is over a limit, which may fall and never rises.

scripts/ratchet.txt has one line for each exception, sorted: MEASURE PLACE NUMBER REASON. A place is a class
(PATH:Outer::Inner), a file, or a directory. Where nothing is listed, the limit itself holds.

    methods    of a class                                                          30
    members    data members of a class, constants aside                            15
    files      .cc files with bodies of one class                                   2
    comments   lines of comments that the .cc files of a directory lack to have 6 % each, in those of 200 lines or more
    nouns      sentences in comments of a directory with four or more words that stand in for a noun
    sleeps     waits of a file for a time instead of an event
    wide       lines of a Markdown page over 120 columns, tables aside

`scripts/tidy --ratchet` rewrites the list from the present state. It lowers numbers and drops what is within its
limit. What is new or has risen it lists with a '?' before the reason, and tidy refuses such a line until a person has
put a reason there. `scripts/tidy --list MEASURE [PATH...]` names each place.
"""
import collections
import dataclasses
import pathlib

import measures

LIST = "scripts/ratchet.txt"
HEADER = "# MEASURE PLACE NUMBER REASON, sorted; scripts/ratchet.py says what each measure is. Numbers fall and never rise.\n"
LIMITS = {"methods": 30, "members": 15, "files": 2, "comments": 0, "nouns": 0, "sleeps": 0, "wide": 0}
MEANING = {
    "methods": "methods; a class of over 30 is several",
    "members": "data members; a class of over 15 is several",
    "files": ".cc files with bodies of one class; over 2 they are several classes",
    "comments": "lines of comments too few: 6 % of a .cc file of 200 lines or more say why",
    "nouns": "sentences that name no noun: say session, worker, lane, client (scripts/tidy --list nouns PATH)",
    "sleeps": "waits for a time: wait for the event, or share one poll that states its period",
    "wide": "lines of over 120 columns",
}
COMMENT_SHARE_MIN = 0.06
COMMENT_FILE_LINES_MIN = 200
PAGE_WIDTH_MAX = 120
SOURCE = {".cc", ".c", ".h", ".cu"}
NO_CLASSES_OF_OURS = ("tests/", "examples/")


@dataclasses.dataclass
class Exception_:
    number: int
    reason: str


class Measured:
    """What the present state of the tree measures: numbers by (measure, place), and where they come from."""

    def __init__(self):
        self.numbers = collections.Counter()
        self.places = collections.defaultdict(list)  # (measure, place) -> (path, line, text)

    def add(self, measure, place, number, where):
        if number > 0:
            self.numbers[measure, place] += number
            self.places[measure, place].append(where)


def measure(texts):
    """Measures the files: `texts` has the content of each by its path."""
    found = Measured()
    bodies = collections.defaultdict(set)  # (directory, class) -> .cc files
    homes = {}  # (directory, class) -> place
    for path, text in sorted(texts.items()):
        suffix, directory = pathlib.PurePath(path).suffix, str(pathlib.PurePath(path).parent)
        if suffix == ".md":
            for line in measures.wide_lines(text, PAGE_WIDTH_MAX):
                found.add("wide", path, 1, (path, line, ""))
        if suffix not in SOURCE:
            continue
        for line, sentence in measures.nounless(text):
            found.add("nouns", directory, 1, (path, line, sentence))
        for line in measures.sleeps(text):
            found.add("sleeps", path, 1, (path, line, ""))
        if path.startswith(NO_CLASSES_OF_OURS):
            continue
        measure_comments(found, path, directory, text)
        for size in measures.classes_in(text):
            place = f"{path}:{size.name.replace(' ', '')}"
            found.add("methods", place, size.methods, (path, size.line, size.name))
            found.add("members", place, size.members, (path, size.line, size.name))
            homes[directory, size.name] = place, (path, size.line, size.name)
        for name in measures.bodies_in(text) if suffix == ".cc" else ():
            bodies[directory, name].add(path)
    for key in bodies.keys() & homes.keys():
        place, where = homes[key]
        found.add("files", place, len(bodies[key]), where)
    return found


def measure_comments(found, path, directory, text):
    lines = text.count("\n")
    if path.endswith(".cc") and lines >= COMMENT_FILE_LINES_MIN:
        lacking = int(lines * COMMENT_SHARE_MIN + 0.999) - measures.comment_lines(text)
        found.add("comments", directory, lacking, (path, 1, f"lacks {lacking}"))


def read(text):
    """The exceptions of a list by (measure, place). Raises ValueError for a line that is none."""
    listed = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line or line.startswith("#"):
            continue
        fields = line.split(" ", 3)
        if len(fields) != 4 or fields[0] not in LIMITS or not fields[2].isdigit() or not fields[3].strip():
            raise ValueError(f"{number}: not MEASURE PLACE NUMBER REASON: {line}")
        if (fields[0], fields[1]) in listed:
            raise ValueError(f"{number}: listed twice: {fields[0]} {fields[1]}")
        listed[fields[0], fields[1]] = Exception_(int(fields[2]), fields[3])
    return listed


def written(listed):
    return HEADER + "".join(f"{measure} {place} {listed[measure, place].number} {listed[measure, place].reason}\n"
                            for measure, place in sorted(listed))


def over(found):
    """What of the numbers is over its limit."""
    return {key: number for key, number in found.numbers.items() if number > LIMITS[key[0]]}


def compare(found, listed):
    """(findings, notes): findings are (place, line, measure, sentence), notes are sentences about what has fallen."""
    findings, notes = [], []
    now = over(found)
    for (name, place), number in sorted(now.items()):
        known = listed.get((name, place))
        path, line, _ = found.places[name, place][0]
        if known is None or number > known.number:
            where = (place, 0) if name in ("comments", "nouns") else (path, line)
            before = f"limit {LIMITS[name]}" if known is None else f"{LIST} allows {known.number}"
            findings.append((*where, name, f"{place.split(':', 1)[-1]} has {number} ({before}) {MEANING[name]}"))
        elif number < known.number:
            notes.append(f"{name} of {place}: {known.number} has become {number}")
    for name, place in sorted(listed.keys() - now.keys()):
        notes.append(f"{name} of {place}: within its limit now")
    for (name, place), known in sorted(listed.items()):
        if known.reason.startswith("?") and (name, place) in now:
            findings.append((LIST, 0, name, f"{place}: replace the '?' by the reason for this exception"))
    return findings, notes


def renewed(found, listed):
    """The list as the present state wants it: see above for what is new or has risen."""
    result = {}
    for key, number in over(found).items():
        known = listed.get(key, Exception_(0, ""))
        reason = known.reason
        if number > known.number and not reason.startswith("?"):
            reason = f"? {reason}".strip()
        result[key] = Exception_(number, reason)
    return result


def places(found, name, is_wanted):
    """A line for each place of a measure that is over its limit."""
    return [f"{path}:{line}: {text or name}" + (f" ({number})" if LIMITS[name] else "")
            for (measure, place), number in sorted(over(found).items()) if measure == name
            for path, line, text in found.places[measure, place] if is_wanted(path)]
