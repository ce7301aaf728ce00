__version__ = "99.1.0"
