"""Programs that allocate when they are told to, and what they were answered."""
import os

from harness.checks import check, wait_for
from harness.jobs import session_of

GROW_MIB = 8  # what a growing program asks for at a time


class Growing:
    """A program that allocates GROW_MIB whenever it is told to, and what it was answered."""

    def __init__(self, laneway, *options):
        self.laneway = laneway
        self.program = laneway.spawn([laneway.binary("allocate"), str(GROW_MIB), "step"], *options, holding=True)
        wait_for(lambda: session_of(laneway, self.program), "it has a session")
        self.job = session_of(laneway, self.program)["job"]
        self.asked = 0

    def grow(self):
        os.write(self.program.process.stdin.fileno(), b"x")
        self.asked += 1

    def answers(self):
        return [int(line) for line in self.program.output().splitlines()]

    def grows(self):
        """The code of one more allocation."""
        self.grow()
        wait_for(lambda: len(self.answers()) == self.asked,
                 lambda: f"it is answered: {self.laneway.command('why', str(self.job)).out}", 60)
        return self.answers()[-1]

    def end(self):
        self.program.release()
        check(self.program.wait().code == 0, f"it ends by itself\n{self.program.errors()}")
