"""Stands for torch where there is none: a newer one than any that was tried."""
from torch import version
from torch import _C

__version__ = version.__version__
