"""What gloo of torch 2.8 prints by itself, taken out of what a program prints."""
import re


def without_gloo(out):
    """The lines of the program, in any order: gloo tells of its connections in pieces, which processes that share an output mix up, so that a number
    of gloo's may stand before what the program says."""
    out = re.sub(r"\[Gloo\] Rank|is connected to|peer ranks\.|Expected number of connected peer ranks is :", "", out)
    return sorted(filter(None, (line.lstrip("0123456789 .\t") for line in out.splitlines())))
