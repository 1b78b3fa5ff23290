#!/usr/bin/env python3
"""Checks docs/traces.md: its files exist, each trace names a file once, and no trace is longer than its title says."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "traces.md"


def traces(text):
    """(title, limit, files) of each trace of the page."""
    found = []
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title = part.split("\n", 1)[0]
        limit = re.search(r"\(at most (\d+) files\)$", title)
        steps = re.findall(r"^(\d+)\. `([^`]+)`: \S", part, re.MULTILINE)
        found.append((title, int(limit.group(1)) if limit else 0, steps))
    return found


class TracesTest(unittest.TestCase):
    def test_the_page_has_its_traces(self):
        self.assertEqual(len(traces(PAGE.read_text())), 4)

    def test_their_files_exist(self):
        missing = [f"{title}: {path}" for title, _, steps in traces(PAGE.read_text()) for _, path in steps
                   if not (ROOT / path).is_file()]
        self.assertEqual(missing, [], "a file has moved: name the one that does its part now")

    def test_they_are_within_their_limits(self):
        for title, limit, steps in traces(PAGE.read_text()):
            self.assertGreater(len(steps), 0, title)
            self.assertLessEqual(len(steps), limit, title)

    def test_each_step_has_its_number_and_a_file_of_its_own(self):
        for title, _, steps in traces(PAGE.read_text()):
            self.assertEqual([int(number) for number, _ in steps], list(range(1, len(steps) + 1)), title)
            self.assertEqual(len({path for _, path in steps}), len(steps), title)

    def test_a_page_that_is_wrong_is_noticed(self):
        (title, limit, steps), = traces("## A call (at most 1 files)\n1. `a.cc`: b\n2. `c.cc`: d\n")
        self.assertEqual((title, limit, len(steps)), ("A call (at most 1 files)", 1, 2))


if __name__ == "__main__":
    unittest.main()
