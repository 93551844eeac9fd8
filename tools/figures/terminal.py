#!/usr/bin/env python3
"""terminal.py FILE.png [--columns N] [--rows N] [--after SECONDS] -- COMMAND…: a picture of COMMAND in a terminal.

Runs COMMAND in a pseudo-terminal until it ends, or for SECONDS, and draws the last rows that a person would see. Needs
chromium. Understands what Finch writes: text, colours, carriage returns and "clear to the end of the line".
"""
import argparse
import codecs
import fcntl
import html
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

COLOURS = {30: "#3b4252", 31: "#d0543f", 32: "#3f8f4f", 33: "#b7791f", 34: "#3b6fb6", 35: "#8f5fa8", 36: "#2f8f9d", 37: "#d8dee9", 90: "#7a8291"}
SEQUENCE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])")


class Screen:
    """The lines of a terminal: a list of (character, style) per line."""

    def __init__(self, columns):
        self.columns, self.lines, self.column, self.style = columns, [[]], 0, ()

    def write(self, text):
        position = 0
        while position < len(text):
            sequence = SEQUENCE.match(text, position)
            if sequence:
                self.obey(sequence[1], sequence[2])
                position = sequence.end()
                continue
            self.put(text[position])
            position += 1

    def put(self, character):
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self.lines.append([])
            self.column = 0
        elif character >= " ":
            if self.column == self.columns:
                self.put("\n")
            line = self.lines[-1]
            line.extend([(" ", ())] * (self.column - len(line)))
            line[self.column:self.column + 1] = [(character, self.style)]
            self.column += 1

    def obey(self, numbers, letter):
        if letter == "K":
            del self.lines[-1][self.column:]
        elif letter == "J" or letter == "H":
            self.lines, self.column = [[]], 0
        elif letter == "m":
            for number in (int(part or 0) for part in numbers.split(";")):
                self.style = () if number == 0 else (*self.style, number)

    def markup(self, rows):
        shown = [line for line in self.lines]
        while shown and not shown[-1]:
            shown.pop()
        return "\n".join("".join(span(character, style) for character, style in line) for line in shown[-rows:])


def span(character, style):
    css = "".join("font-weight:600;" if number == 1 else "opacity:.65;" if number == 2 else f"color:{COLOURS[number]};" if number in COLOURS else "" for number in style)
    return f'<span style="{css}">{html.escape(character)}</span>' if css else html.escape(character)


def record(command, columns, rows, seconds):
    """Returns the screen after `command` ended, or after `seconds`."""
    process, terminal = pty.fork()
    if process == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.environ.update(TERM="xterm-256color", LANG="C.UTF-8")
        os.execvp(command[0], command)
    screen, text, end = Screen(columns), "", time.monotonic() + seconds
    decoder = codecs.getincrementaldecoder("utf-8")("ignore")
    while time.monotonic() < end:
        if not select.select([terminal], [], [], 0.1)[0]:
            continue
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # the command has ended
            break
        text += decoder.decode(piece)
        if not text.endswith("\x1b") and not re.search(r"\x1b\[[0-9;?]*$", text):
            screen.write(text)
            text = ""
    else:
        os.kill(process, signal.SIGTERM)
    os.waitpid(process, 0)
    return screen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", type=pathlib.Path)
    parser.add_argument("--columns", type=int, default=110)
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--after", type=float, default=3600)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    screen = record(options.command, options.columns, options.rows, options.after)
    markup = screen.markup(options.rows)
    height = 18 * (markup.count("\n") + 1) + 40
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "terminal.html"
        page.write_text('<meta charset="utf-8"><body style="margin:0;background:#fdfcf8"><pre style="margin:20px;font:14px/18px \'DejaVu Sans Mono\',monospace;color:#222">' + markup + "</pre>", encoding="utf-8")
        subprocess.run(["chromium", "--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={int(8.45 * options.columns) + 40},{height}", f"--screenshot={options.picture.resolve()}", page.as_uri()], check=True, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())
